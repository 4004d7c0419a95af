// Functions on dates and times (SPARQL 1.1 §17.4.5), and stream functions (docs/semantics.md §5).
#include "expr/functions.hpp"
#include "source.hpp"

namespace penstock::expr {
namespace {

bool has_date(const Value& value) { return value.type == ValueType::DateTime || value.type == ValueType::Date; }
bool has_time(const Value& value) { return value.type == ValueType::DateTime || value.type == ValueType::Time; }

Value now(Call& call, std::span<const Value>) {
    return Value::moment(ValueType::DateTime, {call.frame.context.now_ms * kMillisecond, 0});
}

Value year(Call&, std::span<const Value> args) {
    return has_date(args[0]) ? Value::integer(date_fields(args[0].moment()).year) : Value{};
}
Value month(Call&, std::span<const Value> args) {
    return has_date(args[0]) ? Value::integer(date_fields(args[0].moment()).month) : Value{};
}
Value day(Call&, std::span<const Value> args) {
    return has_date(args[0]) ? Value::integer(date_fields(args[0].moment()).day) : Value{};
}
Value hours(Call&, std::span<const Value> args) {
    return has_time(args[0]) ? Value::integer(time_fields(args[0].moment()).hour) : Value{};
}
Value minutes(Call&, std::span<const Value> args) {
    return has_time(args[0]) ? Value::integer(time_fields(args[0].moment()).minute) : Value{};
}
Value seconds(Call&, std::span<const Value> args) {
    constexpr std::uint8_t kAttoseconds = 18;
    if (!has_time(args[0])) return {};
    return Value::decimal(without_trailing_zeros({time_fields(args[0].moment()).second, kAttoseconds}));
}

Value timezone(Call&, std::span<const Value> args) {
    if ((!has_date(args[0]) && !has_time(args[0])) || !args[0].moment().has_timezone()) return {};
    return Value::duration(ValueType::DayTimeDuration, {0, args[0].timezone * kMinute});
}
Value tz(Call& call, std::span<const Value> args) {
    if (!has_date(args[0]) && !has_time(args[0])) return {};
    return Value::string(call.frame.keep(timezone_text(args[0].timezone)));
}

Value timestamp(Call& call, std::span<const Value> args) {
    ExprContext& context = call.frame.context;
    if (!context.timestamp) return {};
    TermId triple[] = {call.frame.intern(args[0]), call.frame.intern(args[1]), call.frame.intern(args[2])};
    context.terms.settle(triple, std::size(triple));
    const std::int64_t latest = context.timestamp(triple[0], triple[1], triple[2]);
    return latest == kNever ? Value{} : Value::integer(latest);
}

Value bound_of_window(const Call& call, std::span<const std::int64_t> bounds) {
    if (call.options.window >= bounds.size()) throw Error("an expression names a window that the evaluation lacks");
    return Value::integer(bounds[call.options.window]);
}
Value window_start(Call& call, std::span<const Value>) {
    return bound_of_window(call, call.frame.context.window_starts);
}
Value window_end(Call& call, std::span<const Value>) { return bound_of_window(call, call.frame.context.window_ends); }
Value evaluation_time(Call& call, std::span<const Value>) { return Value::integer(call.frame.context.now_ms); }

}  // namespace

std::span<const FunctionEntry> time_functions() {
    static constexpr FunctionEntry kEntries[] = {
        {"now", 0, 0, now},         {"year", 1, 1, year},         {"month", 1, 1, month},
        {"day", 1, 1, day},         {"hours", 1, 1, hours},       {"minutes", 1, 1, minutes},
        {"seconds", 1, 1, seconds}, {"timezone", 1, 1, timezone}, {"tz", 1, 1, tz},
    };
    return kEntries;
}

std::span<const FunctionEntry> stream_functions() {
    static constexpr FunctionEntry kEntries[] = {
        {"timestamp", 3, 3, timestamp},
        {"window_start", 0, 0, window_start},
        {"window_end", 0, 0, window_end},
        {"evaluation_time", 0, 0, evaluation_time},
    };
    return kEntries;
}

}  // namespace penstock::expr
