// libFuzzer target for the executor of mappings. The first byte chooses a program, the rest is the message.
//   native/build.sh fuzz 600
// The triples of a message that is mapped are valid N-Triples, and have the same ids when they are read again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "answers/text_buffer.hpp"
#include "mapping/mapper.hpp"
#include "rdf/ntriples.hpp"

namespace {

using penstock::Spec;
using Dict = Spec::Dict;
using List = Spec::List;
using penstock::mapping::MappedBatch;
using penstock::mapping::Mapper;
using penstock::mapping::Program;

void demand(bool holds) {
    if (!holds) std::abort();
}

Spec constant(const char* text) { return Dict{{"kind", text[0] == '"' ? "literal" : "iri"}, {"constant", text}}; }

Spec term(const char* kind, List parts, bool is_template, Spec datatype = {}, Spec language = {}) {
    return Dict{{"kind", kind},           {"parts", std::move(parts)}, {"template", is_template},
                {"base", "http://base/"}, {"datatype", datatype},      {"language", std::move(language)}};
}

Spec statement(Spec object) {
    return Dict{{"predicates", List{constant("<urn:p>")}}, {"objects", List{std::move(object)}}};
}

Spec program(const char* format, const char* unit, const Spec& events, const Spec& a, const Spec& b, const Spec& many,
             bool of_file = false) {
    const List statements{statement(term("literal", {a}, false)),
                          statement(term("literal", {many}, false)),
                          statement(term("literal", {a}, false, constant("<urn:d>"))),
                          statement(term("literal", {a}, false, {}, term("literal", {b}, false))),
                          statement(term("literal", {a}, false, term("iri", {b}, false))),
                          statement(term("unsafe", {a}, false)),
                          statement(term("uri", {"urn:t:", many, "/", a}, true)),
                          statement(term("blank", {a}, false)),
                          statement(term("blank", {}, true))};
    const Dict rule{{"iterator", List{}}, {"subject", term("iri", {"http://h/", b}, true)}, {"statements", statements}};
    const Spec time = unit == nullptr ? Spec() : Spec(Dict{{"reference", b}, {"unit", unit}});
    return Dict{{"format", format},    {"events", events},  {"time", time},     {"nulls", List{""}},
                {"rules", List{rule}}, {"max_depth", 16},   {"max_values", 64}, {"max_bytes", 1 << 16},
                {"max_factor", 4},     {"of_file", of_file}};
}

std::vector<std::shared_ptr<const Program>> programs() {
    const Spec a = Dict{{"path", List{"a"}}}, b = Dict{{"path", List{"b", Dict{{"from_end", 1}}}}},
               c = Dict{{"path", List{"b"}}};
    const Spec many = Dict{{"path", List{"a", Spec(), "c"}}};
    const Spec column_a = Dict{{"column", "a"}}, column_b = Dict{{"column", "b"}};
    std::vector<std::shared_ptr<const Program>> made;
    made.push_back(std::make_shared<Program>(program("json", nullptr, List{}, a, c, many)));
    made.push_back(std::make_shared<Program>(program("json", "iso8601", List{"b", Spec()}, a, c, many)));
    made.push_back(std::make_shared<Program>(program("json", "s", List{}, a, b, many)));
    made.push_back(std::make_shared<Program>(program("ndjson", "us", List{}, a, c, many)));
    made.push_back(std::make_shared<Program>(program("csv", nullptr, List{}, column_a, column_b, column_a)));
    made.push_back(std::make_shared<Program>(program("csv", "ms", List{}, column_a, column_b, column_b)));
    made.push_back(std::make_shared<Program>(program("ndjson", nullptr, List{}, a, c, many, true)));
    made.push_back(std::make_shared<Program>(program("csv", nullptr, List{}, column_a, column_b, column_a, true)));
    return made;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const std::vector<std::shared_ptr<const Program>> known = programs();
    if (size == 0) return 0;
    const std::string_view message(reinterpret_cast<const char*>(data) + 1, size - 1);
    demand(penstock::mapping::complete_rows(message) <= message.size());
    const auto& program = known[data[0] % known.size()];
    MappedBatch batch(program);
    Mapper mapper(*program, batch);
    mapper.map(message, 5, 0);
    mapper.map(message, 5, 1);  // nothing of a message changes what the next one gives
    demand(batch.declined.size() == 0 || (batch.declined.size() == 2 && batch.events() == 0));
    demand(batch.events() % 2 == 0);

    penstock::Dictionary dictionary;
    const penstock::mapping::MappedColumns columns = batch.intern(dictionary, nullptr);
    const std::size_t terms = dictionary.size();
    std::size_t row = 0;
    for (std::size_t event = 0; event < batch.events(); ++event) {
        penstock::TextBuffer text;
        batch.write(text, event);
        penstock::BlankScope scope;
        penstock::ParseOptions options;
        options.quads = false;
        const penstock::QuadColumns read = parse_nquads(dictionary, text.text(), options, scope);
        demand(read.subjects.size() == static_cast<std::size_t>(batch.counts[event]));
        for (std::size_t i = 0; i < read.subjects.size(); ++i, ++row) {
            demand(read.subjects[i] == columns.subjects[row] && read.predicates[i] == columns.predicates[row]);
            demand(read.objects[i] == columns.objects[row] ||
                   penstock::tag_of(read.objects[i]) == penstock::Tag::Blank);
        }
    }
    demand(row == columns.subjects.size() && dictionary.size() == terms);
    return 0;
}
