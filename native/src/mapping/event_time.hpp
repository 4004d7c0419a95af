// Times of events from values of messages, as libs/penstock/mapping/event_times.py reads them.
#pragma once

#include <cstdint>
#include <string_view>

#include "mapping/program.hpp"

namespace penstock::mapping {

/// The time in ms of a date and time in ISO 8601. Declined for another text.
std::int64_t iso_time(std::string_view text);

/// The time in ms of a number of seconds, ms or µs, without an exponent. Fractions of a ms are dropped.
std::int64_t epoch_time(std::string_view text, TimeUnit unit);

}  // namespace penstock::mapping
