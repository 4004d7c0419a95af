#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "errors.hpp"
#include "rdf/dictionary.hpp"

namespace penstock {
namespace {

TermView iri(std::string_view text) { return {Kind::Iri, text, {}, {}}; }
TermView literal(std::string_view text, std::string_view datatype = kXsdString, std::string_view lang = {}) {
    return {Kind::Literal, text, datatype, lang};
}
TermView blank(std::string_view label) { return {Kind::Blank, label, {}, {}}; }

std::string text(const Dictionary& dictionary, TermId id) {
    std::string scratch;
    return std::string(dictionary.view(id, scratch).lexical);
}

TEST(Dictionary, GivesATermOneIdAndTheIdItsTerm) {
    Dictionary d;
    const TermId a = d.intern(iri("http://example.org/a"));
    EXPECT_EQ(tag_of(a), Tag::Iri);
    EXPECT_NE(a, kUnbound);
    EXPECT_EQ(d.intern(iri("http://example.org/a")), a);
    EXPECT_EQ(d.find(iri("http://example.org/a")), a);
    EXPECT_EQ(d.find(iri("http://example.org/b")), kUnbound);
    EXPECT_EQ(text(d, a), "http://example.org/a");
    EXPECT_EQ(d.size(), 1U);
}

TEST(Dictionary, KeepsLiteralsApartByDatatypeAndLanguage) {
    Dictionary d;
    const std::string wkt = "http://www.opengis.net/ont/geosparql#wktLiteral";
    const std::vector<TermView> terms = {
        literal("a longer text"),
        literal("a longer text", wkt),
        literal("a longer text", "http://example.org/type"),
        literal("a longer text", "http://example.org/types"),
        literal("a longer text", kRdfLangString, "en"),
        literal("a longer tex", kRdfLangString, "ten"),
        literal("a longer texte", kRdfLangString, "n"),
        literal("007", "http://www.w3.org/2001/XMLSchema#integer"),
        literal("7", "http://www.w3.org/2001/XMLSchema#integer"),
        literal("", kRdfLangString, "en"),
        iri("a longer text"),
        iri(""),
    };
    std::set<TermId> ids;
    std::string scratch;
    for (const TermView& term : terms) {
        const TermId id = d.intern(term);
        ids.insert(id);
        const TermView seen = d.view(id, scratch);
        EXPECT_EQ(seen.kind, term.kind);
        EXPECT_EQ(seen.lexical, term.lexical);
        EXPECT_EQ(seen.datatype, term.datatype);
        EXPECT_EQ(seen.lang, term.lang);
        EXPECT_EQ(d.find(term), id);
    }
    EXPECT_EQ(ids.size(), terms.size());
}

TEST(Dictionary, LiteralsWithoutDatatypeAreStrings) {
    Dictionary d;
    EXPECT_EQ(d.intern(literal("long enough", "")), d.intern(literal("long enough")));
    EXPECT_EQ(d.intern(literal("short", "")), d.intern(literal("short")));
    EXPECT_EQ(d.intern(literal("x", "", "en")), d.intern(literal("x", kRdfLangString, "en")));
}

TEST(Dictionary, LanguageTagsThatDifferInCaseAreOneInLowerCase) {
    Dictionary d;
    LocalTerms local(d);
    std::string scratch;
    const TermId upper = d.intern(literal("x", kRdfLangString, "EN-gb"));
    EXPECT_EQ(d.intern(literal("x", kRdfLangString, "en-GB")), upper);
    EXPECT_EQ(d.find(literal("x", kRdfLangString, "en-gb")), upper);
    EXPECT_EQ(local.intern(literal("x", kRdfLangString, "en-GB")), upper);
    EXPECT_EQ(d.view(upper, scratch).lang, "en-gb");
    const TermId computed = local.intern(literal("y", kRdfLangString, "De-CH"));
    EXPECT_EQ(local.intern(literal("y", kRdfLangString, "de-ch")), computed);
    EXPECT_EQ(local.view(computed, scratch).lang, "de-ch");
    EXPECT_EQ(d.size(), 1U);
}

TEST(Dictionary, RefusesIdsThatNameNothing) {
    Dictionary d;
    std::string scratch;
    const TermId a = d.intern(iri("a"));
    for (const TermId id : {kUnbound, a + 1, make_id(Tag::Literal, payload_of(a)), make_id(Tag::Iri, kPayloadMask),
                            make_id(Tag::Local, 0), make_id(Tag::Extent, 5), make_id(static_cast<Tag>(12), 5)})
        EXPECT_THROW(d.view(id, scratch), DataError) << id;
    const std::vector<TermId> good = {a, kUnbound, make_integer(5), d.fresh_blank()};
    d.check(good.data(), good.size());
    for (const TermId id :
         {a + 1, make_id(Tag::Blank, 1), make_id(Tag::String, 15), make_id(Tag::Decimal, kPayloadMask)})
        EXPECT_THROW(d.check(&id, 1), DataError) << id;
}

TEST(Dictionary, BlankNodesAreNumberedAndFoundByTheirLabel) {
    Dictionary d;
    const TermId first = d.fresh_blank();
    const TermId second = d.fresh_blank();
    EXPECT_NE(first, second);
    EXPECT_EQ(text(d, second), "b1");
    EXPECT_EQ(d.find(blank("b1")), second);
    EXPECT_EQ(d.intern(blank("b1")), second);
    for (const char* label : {"b2", "b01", "b", "b-1", "c0", "b0x", "b99999999999999999999"}) {
        EXPECT_EQ(d.find(blank(label)), kUnbound) << label;
        EXPECT_THROW(d.intern(blank(label)), DataError) << label;
    }
    d.reserve_blanks(10);
    EXPECT_EQ(text(d, d.fresh_blank()), "b10");
    d.reserve_blanks(5);
    EXPECT_EQ(d.blank_count(), 11U);
}

TEST(Dictionary, BatchesGiveTheSameIdsAsSingleCalls) {
    Dictionary d;
    std::mt19937_64 random(1);
    std::vector<std::string> texts;
    for (int i = 0; i < 5000; ++i) texts.push_back("http://example.org/" + std::to_string(random() % 2000));
    std::vector<TermView> terms;
    for (std::size_t i = 0; i < texts.size(); ++i)
        terms.push_back(i % 3 == 0    ? literal(texts[i])
                        : i % 97 == 0 ? literal("5", "http://www.w3.org/2001/XMLSchema#int")
                                      : iri(texts[i]));
    std::vector<TermId> ids(terms.size());
    d.intern(terms, ids.data());
    for (std::size_t i = 0; i < terms.size(); ++i) {
        EXPECT_EQ(d.find(terms[i]), ids[i]);
        EXPECT_EQ(d.intern(terms[i]), ids[i]);
    }
}

TEST(Dictionary, SweepTakesWhatNothingUsedSince) {
    Dictionary d;
    const TermId old = d.intern(iri("old"));
    const TermId permanent = d.intern(iri("permanent"));
    const TermId touched = d.intern(iri("touched"));
    const TermId seen_again = d.intern(iri("seen again"));
    d.keep(&permanent, 1);
    d.set_tick(5);
    d.touch(&touched, 1);
    d.intern(iri("seen again"));
    EXPECT_EQ(d.sweep(0), 0U);
    EXPECT_EQ(d.sweep(5), 1U);
    std::string scratch;
    EXPECT_THROW(d.view(old, scratch), DataError);
    EXPECT_EQ(d.find(iri("old")), kUnbound);
    EXPECT_EQ(text(d, permanent), "permanent");
    EXPECT_EQ(text(d, touched), "touched");
    EXPECT_EQ(d.intern(iri("new")), old) << "the slot is used again";
    EXPECT_EQ(d.sweep(6), 3U);
    EXPECT_EQ(d.find(iri("seen again")), kUnbound);
    EXPECT_NE(d.intern(iri("anything")), kUnbound);
    (void)seen_again;
    EXPECT_EQ(d.sweep(1000), 1U);
    EXPECT_EQ(d.size(), 1U);
}

TEST(Dictionary, FindingATermKeepsItFromTheNextSweep) {
    Dictionary d;
    const TermId a = d.intern(iri("a"));
    d.set_tick(3);
    EXPECT_EQ(d.find(iri("a")), a);
    EXPECT_EQ(d.sweep(3), 0U);
    EXPECT_EQ(d.sweep(4), 1U);
}

TEST(Dictionary, PermanentEntriesOfABatchAreNeverFreed) {
    Dictionary d;
    const TermView terms[] = {iri("a"), iri("b")};
    d.intern(terms[0]);
    TermId ids[2];
    d.intern(terms, ids, Lifetime::Permanent);
    EXPECT_EQ(d.sweep(1'000'000), 0U);
    EXPECT_EQ(d.size(), 2U);
}

TEST(Dictionary, ALeaseDelaysTheSweep) {
    Dictionary d;
    d.set_tick(10);
    d.intern(iri("before"));
    d.set_tick(11);
    {
        const Dictionary::Lease lease(d);
        const Dictionary::Lease another(d);
        d.intern(iri("within"));
        d.set_tick(20);
        EXPECT_EQ(d.sweep(20), 1U);
        EXPECT_NE(d.find(iri("within")), kUnbound);  // which uses it at 20
    }
    EXPECT_EQ(d.sweep(20), 0U);
    EXPECT_EQ(d.sweep(21), 1U);
}

TEST(Dictionary, AStreamOfNewTermsLeavesMemoryWhereItWas) {
    Dictionary d;
    std::size_t settled = 0;
    for (Tick tick = 0; tick < 400; ++tick) {
        d.set_tick(tick);
        for (int i = 0; i < 500; ++i)
            d.intern(iri("http://example.org/fix/" + std::to_string(tick) + "/" + std::to_string(i)));
        const TermId large = d.intern(literal(std::string(5000 + tick, 'x')));
        EXPECT_EQ(text(d, large).size(), 5000 + tick);
        d.sweep(tick < 10 ? 0 : tick - 10);
        if (tick == 100) settled = d.bytes();
    }
    EXPECT_LE(d.bytes(), settled + settled / 10);
    EXPECT_LE(d.size(), 11U * 501U);
}

/// Against a plain map: random interning, touching, keeping, leasing and sweeping.
TEST(Dictionary, AgreesWithAModelUnderRandomUse) {
    std::mt19937_64 random(99);
    for (int round = 0; round < 20; ++round) {
        Dictionary d;
        struct Known {
            TermId id;
            Tick last;
            bool permanent;
        };
        std::map<std::string, Known> model;
        std::vector<std::pair<Tick, std::unique_ptr<Dictionary::Lease>>> leases;
        Tick now = 0;
        for (int step = 0; step < 3000; ++step) {
            const std::string name = "t" + std::to_string(random() % 300) + std::string(random() % 3 * 300, 'x');
            switch (random() % 12) {
                default: {
                    const TermId id = d.intern(iri(name));
                    const auto [it, fresh] = model.try_emplace(name, Known{id, now, false});
                    EXPECT_EQ(it->second.id, id);
                    it->second.last = now;
                    break;
                }
                case 0:
                    if (const auto it = model.find(name); it != model.end() && random() % 8 == 0) {
                        d.keep(&it->second.id, 1);
                        it->second.permanent = true;
                    }
                    break;
                case 1:
                    if (const auto it = model.find(name); it != model.end()) {
                        d.touch(&it->second.id, 1);
                        it->second.last = now;
                    }
                    break;
                case 2:
                    d.set_tick(now += random() % 3);
                    break;
                case 3:
                    leases.emplace_back(now, std::make_unique<Dictionary::Lease>(d));
                    break;
                case 4:
                    if (!leases.empty()) leases.erase(leases.begin() + static_cast<long>(random() % leases.size()));
                    break;
                case 5: {
                    Tick horizon = now - std::min<Tick>(now, random() % 5);
                    std::size_t gone = 0;
                    Tick effective = horizon;
                    for (const auto& lease : leases) effective = std::min(effective, lease.first);
                    for (auto it = model.begin(); it != model.end();)
                        if (!it->second.permanent && it->second.last < effective) {
                            it = model.erase(it);
                            ++gone;
                        } else {
                            ++it;
                        }
                    EXPECT_EQ(d.sweep(horizon), gone);
                    break;
                }
            }
        }
        EXPECT_EQ(d.size(), model.size());
        for (const auto& [name, known] : model) EXPECT_EQ(text(d, known.id), name);
    }
}

TEST(LocalTerms, GiveTermsOfTheDictionaryTheirIds) {
    Dictionary d;
    const TermId known = d.intern(iri("known"));
    LocalTerms local(d);
    EXPECT_EQ(local.intern(iri("known")), known);
    EXPECT_EQ(local.intern(literal("5", "http://www.w3.org/2001/XMLSchema#integer")), make_integer(5));
    const TermId made = local.intern(literal("a computed text"));
    EXPECT_EQ(tag_of(made), Tag::Local);
    EXPECT_EQ(local.intern(literal("a computed text")), made);
    EXPECT_EQ(local.intern(literal("a computed text", "")), made);
    EXPECT_NE(local.intern(literal("a computed text", kRdfLangString, "en")), made);
    d.intern(literal("a computed text"));
    EXPECT_EQ(local.intern(literal("a computed text")), made) << "one id throughout an evaluation";
    std::string scratch;
    EXPECT_EQ(local.view(made, scratch).lexical, "a computed text");
    EXPECT_EQ(local.view(known, scratch).lexical, "known");
    EXPECT_THROW(local.view(make_id(Tag::Local, 99), scratch), DataError);
    EXPECT_EQ(local.size(), 2U);
}

TEST(LocalTerms, MakeBlankNodesThatNoOtherEvaluationHas) {
    Dictionary d;
    LocalTerms a(d);
    LocalTerms b(d);
    std::string scratch;
    std::set<std::string> labels;
    for (LocalTerms* local : {&a, &b})
        for (int i = 0; i < 3; ++i) {
            const TermView view = local->view(local->fresh_blank(), scratch);
            EXPECT_EQ(view.kind, Kind::Blank);
            labels.emplace(view.lexical);
        }
    EXPECT_EQ(labels.size(), 6U);
    EXPECT_THROW(a.intern(blank("nope")), DataError);
}

TEST(LocalTerms, PublishTheirTermsOnce) {
    Dictionary d;
    LocalTerms local(d);
    const TermId text_id = local.intern(literal("a computed text"));
    const TermId node = local.fresh_blank();
    EXPECT_EQ(local.publish(make_integer(3), d), make_integer(3));
    const TermId published_text = local.publish(text_id, d);
    EXPECT_EQ(published_text, d.find(literal("a computed text")));
    const TermId published = local.publish(node, d);
    EXPECT_EQ(tag_of(published), Tag::Blank);
    EXPECT_EQ(local.publish(node, d), published);
    EXPECT_NE(local.publish(local.fresh_blank(), d), published);
}

}  // namespace
}  // namespace penstock
