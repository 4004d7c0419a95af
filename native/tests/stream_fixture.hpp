// A store, a dictionary and a directory of their own, for tests of streams and windows.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "rdf/dictionary.hpp"
#include "store/store.hpp"
#include "stream/stream.hpp"

namespace penstock::testing {

class Directory {
public:
    Directory() {
        std::string name = (std::filesystem::temp_directory_path() / "penstock-stream-XXXXXX").string();
        path_ = ::mkdtemp(name.data());
    }
    ~Directory() { std::filesystem::remove_all(path_); }
    const std::string& path() const { return path_; }

private:
    std::string path_;
};

inline TermId iri(std::uint64_t n) { return make_id(Tag::Iri, n); }

struct Tuple {
    std::int64_t ts;
    std::uint64_t s, p, o;  // numbers of IRIs
    bool operator==(const Tuple&) const = default;
};

struct Fixture {
    Directory directory;
    Dictionary dictionary;
    Store store{directory.path(), 1, std::size_t{1} << 30};

    static StreamOptions timing(std::int64_t batch_ms) {
        StreamOptions options;
        options.number = 1;
        options.batch_ms = batch_ms;
        options.all_timing = true;
        return options;
    }
    Label label(std::uint64_t predicate) { return store.labels().intern(0, iri(predicate)); }
};

inline void append(Stream& stream, const std::vector<Tuple>& tuples) {
    std::vector<std::int64_t> ts;
    std::vector<TermId> s, p, o;
    for (const Tuple& t : tuples) {
        ts.push_back(t.ts);
        s.push_back(iri(t.s));
        p.push_back(iri(t.p));
        o.push_back(iri(t.o));
    }
    stream.append(ts, s, p, o);
}

}  // namespace penstock::testing
