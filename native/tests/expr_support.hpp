// Expressions for tests, written as S-expressions over terms as Turtle spells them:
//   (+ 1 2.5)   (substr "foobar"@en 4)   (= ?x "2008-04-01"^^date)   (regex "abc" "^a" "i")
// A datatype without brackets is XSD's. `err` stands for an error or an unbound variable.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "expr/expression.hpp"

namespace penstock::test {

class Terms {
public:
    explicit Terms(LocalTerms& local) : local_(local) {}

    /// One term from the front of `text`, which is cut.
    TermId read(std::string_view& text) {
        skip(text);
        if (text.front() == '<') return local_.intern({Kind::Iri, until(text, 1, '>'), {}, {}});
        if (text.front() == '"') return literal(text);
        std::string word;
        while (!text.empty() && text.front() != ' ' && text.front() != ')' && text.front() != '(') {
            word += text.front();
            text.remove_prefix(1);
        }
        if (word == "err") return kUnbound;
        if (word.starts_with("_:")) return blank(word);
        if (word == "true" || word == "false") return typed(word, "boolean");
        if (word.find_first_of("eE") != std::string::npos) return typed(word, "double");
        return typed(word, word.find('.') != std::string::npos ? "decimal" : "integer");
    }
    TermId operator()(std::string_view text) { return read(text); }
    TermId typed(std::string_view lexical, const std::string& xsd) {
        return local_.intern({Kind::Literal, lexical, std::string(kXsd) + xsd, {}});
    }
    TermId string(std::string_view lexical) { return local_.intern({Kind::Literal, lexical, kXsdString, {}}); }
    std::string show(TermId id) {
        if (id == kUnbound) return "err";
        std::string scratch;
        const TermView view = local_.view(id, scratch);
        if (view.kind == Kind::Iri) return "<" + std::string(view.lexical) + ">";
        if (view.kind == Kind::Blank) return "_:" + std::string(view.lexical);
        std::string out = "\"" + std::string(view.lexical) + "\"";
        if (!view.lang.empty()) return out + "@" + std::string(view.lang);
        if (view.datatype == kXsdString) return out;
        if (view.datatype.starts_with(kXsd)) return out + "^^" + std::string(view.datatype.substr(kXsd.size()));
        return out + "^^<" + std::string(view.datatype) + ">";
    }
    static void skip(std::string_view& text) {
        while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
    }

private:
    static std::string until(std::string_view& text, std::size_t from, char end) {
        const std::size_t close = text.find(end, from);
        std::string out(text.substr(from, close - from));
        text.remove_prefix(close + 1);
        return out;
    }
    TermId literal(std::string_view& text) {
        const std::string lexical = until(text, 1, '"');
        if (text.starts_with('@')) {
            std::string tag;
            for (text.remove_prefix(1); !text.empty() && text.front() != ' ' && text.front() != ')';
                 text.remove_prefix(1))
                tag += text.front();
            return local_.intern({Kind::Literal, lexical, kRdfLangString, tag});
        }
        if (!text.starts_with("^^")) return string(lexical);
        text.remove_prefix(2);
        if (text.front() == '<') return local_.intern({Kind::Literal, lexical, until(text, 1, '>'), {}});
        std::string name;
        for (; !text.empty() && text.front() != ' ' && text.front() != ')'; text.remove_prefix(1)) name += text.front();
        return typed(lexical, name);
    }
    TermId blank(const std::string& label) {
        if (!blanks_.contains(label)) blanks_[label] = local_.fresh_blank();
        return blanks_[label];
    }
    LocalTerms& local_;
    std::map<std::string, TermId> blanks_;
};

/// An evaluation with its dictionary: everything that an expression needs.
class ExpressionTest : public ::testing::Test {
protected:
    Dictionary dictionary;
    LocalTerms local{dictionary};
    Terms terms{local};
    Budget budget;
    ExprContext context{local, budget};
    std::map<std::string, Slot> variables;

    Spec parse(std::string_view text) {
        Spec out = parse_next(text);
        Terms::skip(text);
        EXPECT_TRUE(text.empty()) << "left over: " << text;
        return out;
    }

    Column run(std::string_view text, const Table& table) {
        Column out;
        Expression::compile(parse(text))->evaluate(table, context, out);
        return out;
    }
    TermId run(std::string_view text) {
        Table unit;
        unit.rows = 1;
        return run(text, unit)[0];
    }
    std::string show(std::string_view text) { return terms.show(run(text)); }

    /// Expects the very term, spelling included.
    void expect(std::string_view text, std::string_view expected) {
        EXPECT_EQ(show(text), terms.show(terms(expected))) << text;
    }
    using Cases = std::vector<std::pair<std::string_view, std::string_view>>;
    void expect_all(const Cases& cases) {
        for (const auto& [text, expected] : cases) expect(text, expected);
    }

    Slot slot(const std::string& name) {
        return variables.try_emplace(name, static_cast<Slot>(variables.size())).first->second;
    }
    /// A table of one column per name, each written as terms separated by spaces.
    Table table(const std::vector<std::pair<std::string, std::string>>& columns) {
        Table out;
        for (const auto& [name, text] : columns) {
            out.slots.push_back(slot(name));
            Column column;
            std::string_view rest = text;
            for (Terms::skip(rest); !rest.empty(); Terms::skip(rest)) column.push_back(terms.read(rest));
            out.rows = column.size();
            out.columns.push_back(std::move(column));
        }
        return out;
    }

private:
    Spec parse_next(std::string_view& text) {
        Terms::skip(text);
        if (text.front() == '?') return variable(text);
        if (text.front() != '(') return Spec::Dict{{"id", Spec(static_cast<std::uint64_t>(terms.read(text)))}};
        text.remove_prefix(1);
        const std::size_t end = text.find_first_of(" )");
        Spec::Dict call{{"call", Spec(std::string(text.substr(0, end)))}};
        text.remove_prefix(end);
        Spec::List arguments;
        for (Terms::skip(text); text.front() != ')'; Terms::skip(text)) {
            if (text.front() == ':') {  // a member of the call: :base <…>, :window 1
                const std::size_t stop = text.find(' ');
                const std::string member(text.substr(1, stop - 1));
                text.remove_prefix(stop + 1);
                const std::size_t close = text.find_first_of(" )");
                const std::string value(text.substr(0, close));
                text.remove_prefix(close);
                call.emplace_back(member, member == "window" ? Spec(std::stoi(value)) : Spec(value));
                continue;
            }
            arguments.push_back(parse_next(text));
        }
        text.remove_prefix(1);
        call.emplace_back("args", Spec(std::move(arguments)));
        return Spec(std::move(call));
    }
    Spec variable(std::string_view& text) {
        const std::size_t end = std::min(text.find_first_of(" )"), text.size());
        const std::string name(text.substr(1, end - 1));
        text.remove_prefix(end);
        return Spec::Dict{{"var", Spec(static_cast<int>(slot(name)))}};
    }
};

}  // namespace penstock::test
