// Partial dictionaries (ADR 0037): a source's terms under its ids, private ones beside them.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "errors.hpp"
#include "rdf/dictionary.hpp"

namespace penstock {
namespace {

TermView iri(std::string_view text) { return {Kind::Iri, text, {}, {}}; }
TermView literal(std::string_view text) { return {Kind::Literal, text, kXsdString, {}}; }

/// A whole dictionary as the source of a partial one; counts requests.
class Whole final : public TermSource {
public:
    Dictionary terms;
    std::size_t fetches = 0, fetched = 0, looked_for = 0;
    bool unavailable = false;

    void fetch(std::span<const TermId> ids, Dictionary& into) override {
        if (unavailable) throw Error("unavailable");
        ++fetches;
        fetched += ids.size();
        std::string scratch;
        std::vector<TermView> found;
        for (const TermId id : ids) found.push_back(terms.view(id, scratch));
        into.adopt(ids, found);
    }
    void find(std::span<const TermView> asked, TermId* out) override {
        if (unavailable) throw Error("unavailable");
        looked_for += asked.size();
        for (const TermView& term : asked) *out++ = terms.find(term);
    }
};

struct PartialDictionary : testing::Test {
    PartialDictionary() : source(std::make_shared<Whole>()) { d.attach(source); }

    std::string text(TermId id) {
        std::string scratch;
        return std::string(d.view(id, scratch).lexical);
    }
    std::shared_ptr<Whole> source;
    Dictionary d;
};

TEST_F(PartialDictionary, FetchesWhatIsMissingAtOnceAndOnlyThat) {
    std::vector<TermId> ids;
    for (int i = 0; i < 10'000; ++i) ids.push_back(source->terms.intern(iri("http://e/" + std::to_string(i))));
    const std::vector<TermId> some = {ids[9'999], make_id(Tag::Integer, 7), kUnbound, ids[3], ids[3], ids[9'999]};
    EXPECT_GT(d.require(some.data(), some.size()), 0U);
    EXPECT_EQ(source->fetches, 1U);
    EXPECT_EQ(source->fetched, 2U);
    EXPECT_EQ(text(ids[3]), "http://e/3");
    EXPECT_EQ(d.find(iri("http://e/9999")), ids[9'999]);
    EXPECT_EQ(d.require(some.data(), some.size()), 0U);
    EXPECT_EQ(source->fetches, 1U);
    d.require(ids.data(), ids.size());
    EXPECT_EQ(source->fetches, 3U);  // 8,192 at once
    EXPECT_EQ(source->fetched, ids.size());
    EXPECT_EQ(d.size(), ids.size());
}

TEST_F(PartialDictionary, ReturnsTheMemoryOfSlotsWithoutTerms) {
    constexpr int kTerms = 200'000;  // 49 segments
    std::vector<TermId> ids;
    for (int i = 0; i < kTerms; ++i) ids.push_back(source->terms.intern(iri("http://e/" + std::to_string(i))));
    const std::vector<TermId> few(ids.begin(), ids.begin() + 4'000);
    d.require(few.data(), few.size());
    d.set_tick(1);
    d.sweep(1);
    const std::size_t before = d.bytes();
    std::size_t most = 0;
    for (std::size_t from = 0; from < ids.size(); from += 4'000) {
        d.require(ids.data() + from, 4'000);
        d.set_tick(d.tick() + 1);
        most = std::max(most, d.bytes());
        d.sweep(d.tick());
    }
    EXPECT_EQ(d.size(), 0U);
    EXPECT_LT(d.bytes(), before + 100'000);
    EXPECT_LT(most, before + 400'000);  // with all segments it would be 3 MB more
    for (std::size_t i = 0; i < ids.size(); i += 5'000) d.require(&ids[i], 1);
    EXPECT_LT(d.bytes(), before + 400'000) << "a few scattered terms";
    d.require(ids.data(), ids.size());  // released pages are filled again
    for (int i = 0; i < kTerms; i += 997)
        EXPECT_EQ(text(ids[static_cast<std::size_t>(i)]), "http://e/" + std::to_string(i));
}

TEST_F(PartialDictionary, SaysWhichIdNamesNothing) {
    const TermId nothing = make_id(Tag::Iri, 77);
    EXPECT_THROW(d.require(&nothing, 1), DataError);
    std::string scratch;
    EXPECT_THROW(d.view(nothing, scratch), DataError);
}

TEST_F(PartialDictionary, GivesItsOwnTermsPrivateIds) {
    const TermId given = source->terms.intern(iri("http://e/a"));
    const TermId own = d.intern(iri("http://e/b"));
    EXPECT_TRUE(is_private(own));
    EXPECT_FALSE(is_private(given));
    EXPECT_EQ(d.intern(iri("http://e/b")), own);
    d.require(&given, 1);
    EXPECT_EQ(d.intern(iri("http://e/a")), given);
    EXPECT_EQ(text(own), "http://e/b");
}

TEST_F(PartialDictionary, ATermThatTheSourceLearnsLaterSupersedesThePrivateOne) {
    const TermId own = d.intern(iri("http://e/a"));
    TermId ids[] = {own};
    d.settle(ids, 1);
    EXPECT_EQ(ids[0], own);
    const TermId given = source->terms.intern(iri("http://e/a"));
    d.settle(ids, 1);
    EXPECT_EQ(ids[0], given);
    EXPECT_EQ(text(given), "http://e/a");  // adopted at once
    EXPECT_EQ(text(own), "http://e/a");    // still
    EXPECT_EQ(d.find(iri("http://e/a")), given);
    const std::size_t asked = source->looked_for;
    ids[0] = own;
    d.settle(ids, 1);
    EXPECT_EQ(ids[0], given);
    EXPECT_EQ(source->looked_for, asked);  // known here
}

TEST_F(PartialDictionary, SweepsEverythingThatWasNotUsedAndFetchesItAgain) {
    const TermId a = source->terms.intern(iri("http://e/a")), b = source->terms.intern(iri("http://e/b"));
    TermId own = d.intern(iri("http://e/a"));
    const TermId both[] = {a, b};
    d.require(both, 2);
    d.keep(both, 2);  // means no more than "used"
    d.set_tick(1);
    d.require(&b, 1);
    EXPECT_EQ(d.sweep(1), 2U);  // a, and the private entry that it superseded
    EXPECT_EQ(d.size(), 1U);
    d.require(both, 2);
    EXPECT_EQ(text(a), "http://e/a");
    own = d.intern(iri("http://e/c"));
    EXPECT_TRUE(is_private(own));
    d.set_tick(2);
    EXPECT_EQ(d.sweep(2), 3U);
    EXPECT_EQ(d.size(), 0U);
    EXPECT_EQ(d.find(iri("http://e/a")), kUnbound);
    d.require(both, 2);
    EXPECT_EQ(d.find(iri("http://e/a")), a);
}

TEST_F(PartialDictionary, ALeaseKeepsWhatWasRequiredMeanwhile) {
    const TermId a = source->terms.intern(iri("http://e/a")), b = source->terms.intern(iri("http://e/b"));
    d.require(&a, 1);
    d.require(&b, 1);
    d.set_tick(5);
    const Dictionary::Lease lease(d);
    d.require(&a, 1);
    d.set_tick(9);
    d.sweep(9);
    EXPECT_EQ(text(a), "http://e/a");
    EXPECT_EQ(d.size(), 1U);
}

TEST_F(PartialDictionary, RefusesWhatCannotBeASourcesEntry) {
    const std::vector<TermView> a = {iri("http://e/a")};
    const auto adopt = [&](TermId id) { d.adopt(std::span(&id, 1), a); };
    EXPECT_THROW(adopt(make_id(Tag::Literal, 5)), DataError);
    EXPECT_THROW(adopt(make_id(Tag::Iri, kPrivateSlots)), DataError);
    EXPECT_THROW(adopt(make_id(Tag::Iri, 0)), DataError);
    adopt(make_id(Tag::Iri, 5));
    adopt(make_id(Tag::Iri, 5));
    EXPECT_THROW(adopt(make_id(Tag::Iri, 6)), DataError);  // another id of the same term
    const std::vector<TermView> b = {iri("http://e/b")};
    const TermId five = make_id(Tag::Iri, 5);
    EXPECT_THROW(d.adopt(std::span(&five, 1), b), DataError);  // another term of the same id
    EXPECT_THROW(d.attach(source), DataError);
    EXPECT_THROW(d.save("/tmp/never"), StorageError);
}

TEST_F(PartialDictionary, AComputedTermGetsTheSourcesIdBeforeItMeetsOthers) {
    const TermId known = source->terms.intern(literal("known to the source"));
    LocalTerms local(d);
    const TermId computed = local.intern(literal("known to the source")),
                 other = local.intern(literal("computed only"));
    const TermId blank = local.fresh_blank();
    TermId ids[] = {computed, other, blank, computed, make_id(Tag::Integer, 3)};
    EXPECT_EQ(tag_of(computed), Tag::Local);
    local.settle(ids, 5);
    EXPECT_EQ(ids[0], known);
    EXPECT_EQ(ids[1], other);
    EXPECT_EQ(ids[2], blank);
    EXPECT_EQ(ids[3], known);
    EXPECT_EQ(source->looked_for, 2U);
    // What the answer was holds on: no evaluation sees data with a term that came in behind its snapshot.
    source->terms.intern(literal("computed only"));
    TermId again[] = {local.intern(literal("computed only")), local.intern(literal("known to the source"))};
    local.settle(again, 2);
    EXPECT_EQ(again[0], other);
    EXPECT_EQ(again[1], known);
    EXPECT_EQ(source->looked_for, 2U);
    EXPECT_EQ(local.publish(computed, d), known);
}

TEST_F(PartialDictionary, APinnedTermStaysPrivateForOneEvaluation) {
    const TermId own = d.intern(literal("a constant of a query"));
    const TermId later = source->terms.intern(literal("a constant of a query"));
    LocalTerms local(d);
    local.pin(own);
    EXPECT_EQ(local.intern(literal("a constant of a query")), own);
    LocalTerms next(d);
    TermId id = next.intern(literal("a constant of a query"));
    next.settle(&id, 1);
    EXPECT_EQ(id, later);
    EXPECT_EQ(local.intern(literal("a constant of a query")), own);
}

TEST_F(PartialDictionary, AnUnavailableSourceChangesNothing) {
    const TermId a = source->terms.intern(iri("http://e/a"));
    source->unavailable = true;
    EXPECT_THROW(d.require(&a, 1), Error);
    EXPECT_EQ(d.size(), 0U);
    source->unavailable = false;
    d.require(&a, 1);
    EXPECT_EQ(text(a), "http://e/a");
}

}  // namespace
}  // namespace penstock
