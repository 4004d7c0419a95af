#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "errors.hpp"
#include "rdf/dictionary.hpp"

namespace penstock {
namespace {

namespace fs = std::filesystem;

class DictionaryFile : public testing::Test {
protected:
    DictionaryFile() : folder(fs::temp_directory_path() / ("penstock-terms-" + std::to_string(::getpid()))) {
        fs::create_directories(folder);
        path = folder / "terms";
    }
    ~DictionaryFile() override { fs::remove_all(folder); }

    static TermId intern(Dictionary& d, const std::string& iri) { return d.intern({Kind::Iri, iri, {}, {}}); }
    static std::string text(const Dictionary& d, TermId id) {
        std::string scratch;
        return std::string(d.view(id, scratch).lexical);
    }
    std::string content() const {
        std::ifstream file(path, std::ios::binary);
        return {std::istreambuf_iterator<char>(file), {}};
    }
    void write(const std::string& bytes) const { std::ofstream(path, std::ios::binary) << bytes; }

    fs::path folder;
    fs::path path;
};

TEST_F(DictionaryFile, BringsEverythingBackUnderTheSameIds) {
    Dictionary d;
    d.set_tick(3);
    std::vector<TermId> ids;
    for (int i = 0; i < 1000; ++i) ids.push_back(intern(d, "http://example.org/" + std::to_string(i)));
    const TermId lang = d.intern({Kind::Literal, "Grüße", kRdfLangString, "de-CH"});
    const TermId odd = d.intern({Kind::Literal, "x", "http://example.org/type", {}});
    const TermId known = d.intern({Kind::Literal, "12:00:00", "http://www.w3.org/2001/XMLSchema#time", {}});
    const TermId large = d.intern({Kind::Literal, std::string(3'000'000, 'y'), kXsdString, {}});
    for (const TermId id : {lang, odd, known, large}) d.keep(&id, 1);
    d.keep(ids.data(), 10);
    d.set_tick(9);
    d.touch(ids.data() + 10, 5);
    d.fresh_blank();
    d.sweep(9);  // leaves holes
    d.save(path);

    Dictionary back;
    back.load(path);
    EXPECT_EQ(back.size(), 19U);
    EXPECT_EQ(back.tick(), 9U);
    EXPECT_EQ(back.blank_count(), 1U);
    for (int i = 0; i < 15; ++i) EXPECT_EQ(text(back, ids[i]), "http://example.org/" + std::to_string(i));
    std::string scratch;
    EXPECT_EQ(back.view(lang, scratch).lang, "de-ch");
    EXPECT_EQ(back.view(odd, scratch).datatype, "http://example.org/type");
    EXPECT_EQ(back.view(known, scratch).datatype, "http://www.w3.org/2001/XMLSchema#time");
    EXPECT_EQ(back.view(large, scratch).lexical.size(), 3'000'000U);
    EXPECT_THROW(back.view(ids[20], scratch), DataError);
    EXPECT_EQ(back.find({Kind::Literal, "Grüße", kRdfLangString, "de-CH"}), lang);
    EXPECT_EQ(back.sweep(10), 5U) << "permanent entries and ticks are saved";
    const TermId fresh = intern(back, "http://example.org/fresh");
    EXPECT_EQ(text(back, fresh), "http://example.org/fresh");
    EXPECT_EQ(text(back, ids[3]), "http://example.org/3");
}

TEST_F(DictionaryFile, AnEmptyOneCanBeSaved) {
    Dictionary d;
    d.save(path);
    Dictionary back;
    back.load(path);
    EXPECT_EQ(back.size(), 0U);
    EXPECT_NE(intern(back, "a:a"), kUnbound);
}

TEST_F(DictionaryFile, DamageIsFoundAndNothingIsLoaded) {
    Dictionary d;
    for (int i = 0; i < 100; ++i) intern(d, "http://example.org/" + std::to_string(i));
    d.save(path);
    const std::string good = content();
    for (std::size_t at = 0; at < good.size(); at += 37) {
        std::string bad = good;
        bad[at] = static_cast<char>(bad[at] ^ 1);
        write(bad);
        Dictionary back;
        EXPECT_THROW(back.load(path), StorageError) << at;
        EXPECT_EQ(back.size(), 0U);
    }
    for (const std::size_t size : {std::size_t{0}, std::size_t{7}, std::size_t{8}, std::size_t{60}, good.size() - 1}) {
        write(good.substr(0, size));
        Dictionary back;
        EXPECT_THROW(back.load(path), StorageError) << size;
    }
    write(good + "x");
    Dictionary back;
    EXPECT_THROW(back.load(path), StorageError);
}

TEST_F(DictionaryFile, AFailedSaveLeavesTheOldFile) {
    Dictionary d;
    intern(d, "a:a");
    d.save(path);
    const std::string before = content();
    EXPECT_THROW(d.save(folder / "missing" / "terms"), StorageError);
    fs::create_directory(folder / "taken.tmp");  // the temporary file cannot be made
    EXPECT_THROW(d.save(folder / "taken"), StorageError);
    EXPECT_EQ(content(), before);
    EXPECT_FALSE(fs::exists(path.string() + ".tmp"));
}

TEST_F(DictionaryFile, OnlyAnEmptyDictionaryCanLoad) {
    Dictionary d;
    intern(d, "a:a");
    d.save(path);
    EXPECT_THROW(d.load(path), StorageError);
    EXPECT_EQ(d.size(), 1U);
    EXPECT_THROW(d.load(folder / "none"), StorageError);
}

}  // namespace
}  // namespace penstock
