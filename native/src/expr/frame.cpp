#include "expr/frame.hpp"

#include "rdf/inline_literal.hpp"

namespace penstock::expr {
namespace {

Memory& memory_of(ExprContext& context) {
    if (!context.memory) context.memory = std::make_shared<Memory>(context.random_seed);
    return *context.memory;
}

/// Id of a decimal in its canonical spelling ("2.0", "1.5") if that can be inline.
TermId inline_decimal(Decimal value) {
    value = without_trailing_zeros(value);
    if (value.scale == 0) {
        if (value.mantissa > kInlineIntegerMax || value.mantissa < kInlineIntegerMin) return kUnbound;
        value = {value.mantissa * 10, 1};
    }
    if (value.mantissa > kInlineIntegerMax || value.mantissa < kInlineIntegerMin) return kUnbound;
    return make_decimal({static_cast<std::int64_t>(value.mantissa), value.scale});
}

bool points_into(std::string_view text, const std::string& buffer) {
    return !text.empty() && text.data() >= buffer.data() && text.data() < buffer.data() + buffer.size();
}

}  // namespace

Frame::Frame(const Table& table, ExprContext& context) : table(table), context(context), memory(memory_of(context)) {}

void Frame::decode(TermId id, Value& out) {
    switch (tag_of(id)) {
        case Tag::Integer:
        case Tag::Decimal:
        case Tag::Double:
        case Tag::Float:
        case Tag::Boolean:
        case Tag::DateTime:
        case Tag::Date:
            inline_value(id, out);
            return;
        case Tag::String: {
            char buffer[8];
            out = Value::string(keep(short_string(id, buffer)));
            out.id = id;
            return;
        }
        case Tag::Blank:
            out = Value::of_text(ValueType::Blank, {}, {});
            out.id = id;
            return;
        default:
            if (id == kUnbound)
                out = {};
            else
                decode_dictionary(id, out);
    }
}

void Frame::decode_dictionary(TermId id, Value& out) {
    if (const Value* known = memory.values.find(id)) {
        out = *known;
        return;
    }
    out = parse_value(context.terms.view(id, scratch_));
    out.id = id;
    if (points_into(out.text, scratch_) || points_into(out.tag, scratch_)) {
        out.text = keep(out.text);
        out.tag = keep(out.tag);
    } else {
        memory.values.insert(id, out);
    }
}

TermId Frame::intern(const Value& value) {
    if (value.id != kUnbound) return value.id;
    switch (value.type) {
        case ValueType::Error:
            return kUnbound;
        case ValueType::Boolean:
            return make_boolean(value.truth());
        case ValueType::Integer:
            if (value.tag.empty() && value.number >= kInlineIntegerMin && value.number <= kInlineIntegerMax)
                return make_integer(static_cast<std::int64_t>(value.number));
            break;
        case ValueType::Decimal:
            if (const TermId id = inline_decimal(value.decimal())) return id;
            break;
        case ValueType::String:
            if (value.text.size() <= kInlineStringBytes) return make_short_string(value.text);
            break;
        case ValueType::Iri:
            return context.terms.intern({Kind::Iri, value.text, {}, {}});
        default:
            break;
    }
    const std::string_view lexical = canonical_text(value, scratch_);
    const bool language = value.type == ValueType::LangString;
    return context.terms.intern(
        {Kind::Literal, lexical, datatype_iri(value), language ? value.tag : std::string_view{}});
}

void Frame::number(std::span<Value> values) {
    for (Value& value : values) value.id = intern(value);
    if (!context.terms.partial()) return;
    std::vector<TermId> ids;
    ids.reserve(values.size());
    for (const Value& value : values) ids.push_back(value.id);
    context.terms.settle(ids.data(), ids.size());
    for (std::size_t k = 0; k < values.size(); ++k) values[k].id = ids[k];
}

void Frame::fetch(std::span<const Slot> slots) {
    std::vector<TermId> ids;
    for (const Slot slot : slots) {
        const Column* column = table.find(slot);
        if (column == nullptr) continue;
        const auto rows = static_cast<std::ptrdiff_t>(table.rows);
        ids.insert(ids.end(), column->begin(), column->begin() + rows);
    }
    const std::size_t bytes = context.terms.dictionary().require(ids.data(), ids.size());
    context.budget.charge(static_cast<std::ptrdiff_t>(bytes));
}

std::string_view Frame::text(const Value& value) {
    if (value.textual() || value.type == ValueType::Iri || value.type >= ValueType::Malformed) return value.text;
    if (value.id == kUnbound) return keep(canonical_text(value, scratch_));
    return keep(context.terms.view(value.id, scratch_).lexical);
}

Value Frame::foreign(std::string_view name, std::span<const Value> arguments) {
    if (!context.foreign) return {};
    std::vector<TermId> ids;
    ids.reserve(arguments.size());
    foreign_key_.assign(name);
    for (const Value& argument : arguments) {
        ids.push_back(intern(argument));
        foreign_key_.append(reinterpret_cast<const char*>(&ids.back()), sizeof(TermId));
    }
    if (const TermId* known = memory.foreign.find(foreign_key_)) return decode(*known);
    context.budget.check();  // per call, because one call may be slow: a chunk of them would exceed the deadline
    const TermId result = context.foreign(std::string(name), ids, context.terms);
    memory.foreign.insert(foreign_key_, result);
    return decode(result);
}

TermId Frame::blank_of(std::uint32_t row, std::string_view text) {
    const std::uint32_t key = memory.blanks.key(text);
    const auto [entry, added] = row_blanks_.try_emplace(std::uint64_t{row} << 32 | key, kUnbound);
    if (!added) return entry->second;
    for (const Column& column : table.columns)
        if (memory.blanks.made_from(column[row], key)) return entry->second = column[row];
    entry->second = context.terms.fresh_blank();
    memory.blanks.put(entry->second, key);
    return entry->second;
}

const std::vector<std::uint8_t>& Frame::exists(std::size_t subplan) {
    const auto [entry, added] = exists_.try_emplace(subplan);
    if (!added) return entry->second;
    if (!context.exists) throw Error("an expression uses EXISTS where nothing evaluates sub-plans");
    std::vector<std::uint8_t> found(table.rows, 0);
    context.exists(subplan, table, found);
    found.resize(table.rows, 0);
    return entry->second = std::move(found);
}

void check_text(std::size_t bytes) {
    if (bytes > kMaxText) throw LimitError("an expression computed more than 256 MiB of text at once");
}

void Frame::account(std::size_t bytes) {
    check_text(bytes);  // before the addition, which could overflow
    check_text(arena_.bytes() + bytes);
    context.budget.charge(static_cast<std::ptrdiff_t>(bytes));
    charged_texts_ += bytes;
}

void Frame::end_chunk() {
    arena_.reset();
    context.budget.charge(-static_cast<std::ptrdiff_t>(charged_texts_));
    charged_texts_ = 0;
    row_blanks_.clear();
    const std::size_t bytes = context.terms.bytes() + memory.blanks.bytes();
    context.budget.charge(static_cast<std::ptrdiff_t>(bytes) - static_cast<std::ptrdiff_t>(memory.charged_bytes));
    memory.charged_bytes = bytes;
    context.budget.check();
}

}  // namespace penstock::expr
