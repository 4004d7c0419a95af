#include "exec/triples.hpp"

#include <algorithm>
#include <array>

namespace penstock::exec {

void TripleSet::add(Run& run, TermId member, TermId s, TermId p, TermId o) {
    std::array<TermId, 4> cells{member, s, p, o};
    std::size_t columns = buffer_.columns.size();
    seen_.assign_one(std::span<const TermId>(cells).last(columns), run.budget());
}

bool TripleSet::flush(Run& run, Sink& out) {
    while (pushed_ < seen_.size()) {
        std::size_t n = std::min(kMorsel, seen_.size() - pushed_);
        auto first = static_cast<std::ptrdiff_t>(pushed_);
        for (std::size_t c = 0; c < buffer_.columns.size(); ++c)
            buffer_.columns[c].assign(seen_.column(c).begin() + first,
                                      seen_.column(c).begin() + first + static_cast<std::ptrdiff_t>(n));
        buffer_.rows = n;
        pushed_ += n;
        run.work(n);
        if (!out.push(buffer_)) return false;
    }
    return true;
}

Kind kind_of(TermId id, const LocalTerms& terms) {
    if (id == kUnbound) return Kind::Unbound;
    switch (tag_of(id)) {
        case Tag::Iri:
            return Kind::Iri;
        case Tag::Blank:
            return Kind::Blank;
        case Tag::Local: {
            std::string scratch;
            return terms.view(id, scratch).kind;
        }
        default:
            return Kind::Literal;
    }
}

}  // namespace penstock::exec
