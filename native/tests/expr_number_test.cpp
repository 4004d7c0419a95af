#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <random>

#include "expr/decimal.hpp"
#include "expr/exact_sum.hpp"
#include "expr/real_text.hpp"

namespace penstock::expr {
namespace {

Decimal decimal(std::string_view text) {
    Decimal out;
    EXPECT_EQ(parse_decimal(text, false, out), ParsedNumber::Ok) << text;
    return out;
}

/// Random decimals of every magnitude and scale.
class RandomDecimals {
public:
    Decimal operator()() {
        const int bits = static_cast<int>(random_() % 127);
        Int128 mantissa = (static_cast<Int128>(random_()) << 64 | static_cast<Int128>(random_())) & kMaxInt128;
        mantissa >>= 126 - bits;
        return {random_() % 2 ? mantissa : -mantissa, static_cast<std::uint8_t>(random_() % (Decimal::kMaxScale + 1))};
    }
    std::uint64_t bits() { return random_(); }

private:
    std::mt19937_64 random_{42};
};

TEST(Decimals, AreReadAndSpelt) {
    EXPECT_EQ(decimal_text(decimal("+33.3300")), "33.33");
    EXPECT_EQ(decimal_text(decimal("-.5")), "-0.5");
    EXPECT_EQ(decimal_text(decimal("5.")), "5.0");
    EXPECT_EQ(decimal_text(decimal("007")), "7.0");
    EXPECT_EQ(decimal_text(decimal("-0")), "0.0");
    EXPECT_EQ(decimal_text(decimal("100"), true), "100");
    EXPECT_EQ(decimal_text(decimal(std::string(1'000'000, '0') + "1." + std::string(1'000'000, '0'))), "1.0");
    EXPECT_EQ(decimal_text(decimal("0." + std::string(60, '3'))), "0." + std::string(38, '3'));
    Decimal out;
    for (const char* text : {"", "+", ".", "1e0", "1.2.3", "--1", " 1", "1 ", "NaN", "0x1", "1,0"})
        EXPECT_EQ(parse_decimal(text, false, out), ParsedNumber::Malformed) << text;
    EXPECT_EQ(parse_decimal("1.0", true, out), ParsedNumber::Malformed);
    EXPECT_EQ(parse_decimal("170141183460469231731687303715884105727", true, out), ParsedNumber::Ok);
    EXPECT_EQ(parse_decimal("170141183460469231731687303715884105728", true, out), ParsedNumber::TooLarge);
    EXPECT_EQ(parse_decimal(std::string(1'000'000, '9'), true, out), ParsedNumber::TooLarge);
    EXPECT_EQ(parse_decimal(std::string(1'000'000, '9') + "x", true, out), ParsedNumber::Malformed);
}

TEST(Decimals, SpellingIsReadBack) {
    RandomDecimals random;
    for (int i = 0; i < 20'000; ++i) {
        const Decimal value = random();
        EXPECT_EQ(compare(decimal(decimal_text(value)), value), 0) << decimal_text(value);
        EXPECT_EQ(decimal_text(decimal(decimal_text(value))), decimal_text(value));
    }
}

TEST(Decimals, AddAndMultiplyCommute) {
    RandomDecimals random;
    for (int i = 0; i < 20'000; ++i) {
        const Decimal a = random(), b = random();
        const auto sum = add(a, b), swapped = add(b, a);
        ASSERT_EQ(sum.has_value(), swapped.has_value());
        if (sum) {
            EXPECT_EQ(compare(*sum, *swapped), 0);
        }
        const auto product = multiply(a, b), other = multiply(b, a);
        ASSERT_EQ(product.has_value(), other.has_value());
        if (product) {
            EXPECT_EQ(compare(*product, *other), 0);
        }
        const auto negated = multiply({-a.mantissa, a.scale}, b);
        ASSERT_EQ(product.has_value(), negated.has_value());
        if (product) {
            EXPECT_EQ(compare(*negated, {-product->mantissa, product->scale}), 0);
        }
    }
}

TEST(Decimals, SmallOnesObeyTheLawsOfArithmetic) {
    RandomDecimals random;
    const auto small = [&] {
        return Decimal{static_cast<std::int32_t>(random.bits()), static_cast<std::uint8_t>(random.bits() % 6)};
    };
    for (int i = 0; i < 20'000; ++i) {
        const Decimal a = small(), b = small(), c = small();
        EXPECT_EQ(compare(*subtract(*add(a, b), b), a), 0);
        EXPECT_EQ(compare(*add(*add(a, b), c), *add(a, *add(b, c))), 0);
        EXPECT_EQ(compare(*multiply(a, *add(b, c)), *add(*multiply(a, b), *multiply(a, c))), 0);
        EXPECT_EQ(compare(a, b), -compare(b, a));
        EXPECT_EQ(compare(*add(a, c), *add(b, c)), compare(a, b));
        if (b.mantissa != 0) {
            EXPECT_EQ(compare(*divide(*multiply(a, b), b), a), 0);
        }
    }
}

TEST(Decimals, QuotientsAreTheNearestOfTheirDigits) {
    EXPECT_EQ(decimal_text(*divide(decimal("1"), decimal("3"))), "0.333333333333333333");
    EXPECT_EQ(decimal_text(*divide(decimal("2"), decimal("-3"))), "-0.666666666666666667");
    EXPECT_EQ(decimal_text(*divide(decimal("1"), decimal("7000000000"))), "0.000000000142857142857142857");
    EXPECT_EQ(decimal_text(*divide(decimal("1"), decimal("0.00000000000000000000000000000000000001"))),
              "100000000000000000000000000000000000000.0");
    EXPECT_EQ(decimal_text(*divide(decimal("170141183460469231731687303715884105727"), decimal("2"))),
              "85070591730234615865843651857942052864.0");  // its one fraction digit does not fit
    EXPECT_FALSE(divide(decimal("1"), decimal("0")));
    EXPECT_FALSE(divide(decimal("170141183460469231731687303715884105727"), decimal("0.1")));
    RandomDecimals random;
    for (int i = 0; i < 20'000; ++i) {
        const Decimal a = random(), b = random();
        if (b.mantissa == 0) continue;
        const auto quotient = divide(a, b);
        if (!quotient) continue;
        const double expected = to_double(a) / to_double(b);
        EXPECT_NEAR(to_double(*quotient), expected, std::fabs(expected) * 1e-14 + 1e-38);
    }
}

TEST(Decimals, RoundingKnowsDirections) {
    const auto rounded = [](const char* text, Rounding rounding) {
        return decimal_text(to_integral(decimal(text), rounding), true);
    };
    EXPECT_EQ(rounded("-2.5", Rounding::HalfUp), "-2");
    EXPECT_EQ(rounded("2.5", Rounding::HalfUp), "3");
    EXPECT_EQ(rounded("-2.500001", Rounding::HalfUp), "-3");
    EXPECT_EQ(rounded("-2.5", Rounding::Truncate), "-2");
    EXPECT_EQ(rounded("-2.5", Rounding::Floor), "-3");
    EXPECT_EQ(rounded("-2.5", Rounding::Ceiling), "-2");
    EXPECT_EQ(rounded("2.000", Rounding::Ceiling), "2");
}

TEST(Decimals, BecomeTheNearestDouble) {
    RandomDecimals random;
    for (int i = 0; i < 20'000; ++i) {
        const Decimal value = random();
        const std::string text = decimal_text(value);
        EXPECT_EQ(to_double(value), std::strtod(text.c_str(), nullptr)) << text;
        EXPECT_EQ(to_float(value), std::strtof(text.c_str(), nullptr)) << text;
    }
}

TEST(Decimals, CompareWithDoublesExactly) {
    EXPECT_EQ(compare(decimal("0.1"), 0.1), -1);  // the double is a little more than a tenth
    EXPECT_EQ(compare(decimal("-0.1"), -0.1), 1);
    EXPECT_EQ(compare(decimal("0.3"), 0.3), 1);
    EXPECT_EQ(compare(decimal("0.5"), 0.5), 0);
    EXPECT_EQ(compare(decimal("0"), 5e-324), -1);
    EXPECT_EQ(compare(decimal("0"), -0.0), 0);
    EXPECT_EQ(compare(decimal("9007199254740993"), 9007199254740992.0), 1);
    EXPECT_EQ(compare(decimal("-9007199254740993"), -9007199254740992.0), -1);
    EXPECT_EQ(compare(decimal("1"), HUGE_VAL), -1);
    EXPECT_EQ(compare(decimal("1"), -HUGE_VAL), 1);
    EXPECT_EQ(compare(decimal("170141183460469231731687303715884105727"), 0x1p127), -1);
    RandomDecimals random;
    for (int i = 0; i < 20'000; ++i) {
        const double value = std::ldexp(static_cast<double>(static_cast<std::int64_t>(random.bits())),
                                        static_cast<int>(random.bits() % 60) - 70);
        const auto exact = from_double(value);
        ASSERT_TRUE(exact);
        const int order = compare(*exact, value);  // cut towards zero where 38 digits are not enough
        EXPECT_TRUE(order == 0 || (order < 0) == (value > 0)) << value;
        EXPECT_EQ(compare(*exact, std::nextafter(value, HUGE_VAL)), -1) << value;
    }
}

TEST(Reals, AreReadAndSpelt) {
    const std::pair<double, const char*> cases[] = {
        {10, "1.0E1"},     {0.001, "1.0E-3"},   {-2.5, "-2.5E0"},      {0, "0.0E0"},
        {-0.0, "-0.0E0"},  {1e300, "1.0E300"},  {5e-324, "5.0E-324"},  {123456789, "1.23456789E8"},
        {HUGE_VAL, "INF"}, {-HUGE_VAL, "-INF"}, {std::nan(""), "NaN"},
    };
    for (const auto& [value, text] : cases) EXPECT_EQ(real_text(value), text);
    EXPECT_EQ(real_text(0.1f), "1.0E-1");
    double out = 0;
    EXPECT_TRUE(parse_real("1e400", out) && out == HUGE_VAL);
    EXPECT_TRUE(parse_real("-1e400", out) && out == -HUGE_VAL);
    EXPECT_TRUE(parse_real("-1e-400", out) && out == 0 && std::signbit(out));
    EXPECT_TRUE(parse_real("1e" + std::string(1000, '9'), out) && out == HUGE_VAL);
    EXPECT_TRUE(parse_real("1e-" + std::string(1000, '9'), out) && out == 0);
    EXPECT_TRUE(parse_real("0e" + std::string(1000, '9'), out) && out == 0);
    EXPECT_TRUE(parse_real(std::string(400, '1') + "e-400", out) && out > 0.1 && out < 0.2);
    EXPECT_TRUE(parse_real("0." + std::string(400, '0') + "1e401", out) && out == 1);
    EXPECT_TRUE(parse_real("+INF", out) && parse_real(".5", out) && parse_real("5.", out) && parse_real("+5e+05", out));
    for (const char* text :
         {"", ".", "e5", "1e", "1e+", "inf", "nan", "0x1p3", "1e5.0", " 1", "infinity", "-NaN", "+-1"})
        EXPECT_FALSE(parse_real(text, out)) << text;
}

/// Shewchuk's sum of non-overlapping parts, rounded as Python's fsum does it.
double reference_sum(const std::vector<double>& values) {
    std::vector<double> parts;
    for (double x : values) {
        std::size_t used = 0;
        for (double y : parts) {
            if (std::fabs(x) < std::fabs(y)) std::swap(x, y);
            const double high = x + y, low = y - (high - x);
            if (low != 0) parts[used++] = low;
            x = high;
        }
        parts.resize(used);
        parts.push_back(x);
    }
    if (parts.empty()) return 0;
    double high = parts.back();
    parts.pop_back();
    double low = 0;
    while (!parts.empty()) {
        const double x = high, y = parts.back();
        parts.pop_back();
        high = x + y;
        low = y - (high - x);
        if (low != 0) break;
    }
    if (!parts.empty() && ((low < 0 && parts.back() < 0) || (low > 0 && parts.back() > 0))) {
        const double y = low * 2, x = high + y;
        if (y == x - high) high = x;
    }
    return high;
}

TEST(ExactSums, OfDoublesAreRoundedOnce) {
    std::mt19937_64 random(7);
    for (int round = 0; round < 2000; ++round) {
        const int spread = static_cast<int>(random() % 600) + 1;
        std::vector<double> values(random() % 40);
        for (double& value : values) {
            value = std::ldexp(static_cast<double>(static_cast<std::int64_t>(random())),
                               static_cast<int>(random() % static_cast<unsigned>(spread)) - spread / 2 - 64);
            if (random() % 4 == 0) value = -values[0];
        }
        ExactDoubleSum forward, backward;
        for (const double value : values) forward.add(value);
        std::shuffle(values.begin(), values.end(), random);
        for (const double value : values) backward.add(value);
        EXPECT_EQ(forward.total(), reference_sum(values));
        EXPECT_EQ(forward.total(), backward.total());
        EXPECT_EQ(forward.total(true), backward.total(true));
    }
}

TEST(ExactSums, OfDoublesReachTheEndsOfTheRange) {
    const double largest = std::numeric_limits<double>::max(), smallest = 5e-324;
    ExactDoubleSum sum;
    for (const double value : {largest, largest, smallest, -largest, -largest}) sum.add(value);
    EXPECT_EQ(sum.total(), smallest);
    sum.add(-smallest);
    EXPECT_EQ(sum.total(), 0);
    EXPECT_FALSE(std::signbit(sum.total()));
    sum.add(largest);
    sum.add(largest);
    EXPECT_EQ(sum.total(), HUGE_VAL);
    sum.add(-HUGE_VAL);
    EXPECT_EQ(sum.total(), -HUGE_VAL);
    sum.add(HUGE_VAL);
    EXPECT_TRUE(std::isnan(sum.total()));
}

TEST(ExactSums, OfFloatsAreRoundedToFloats) {
    ExactDoubleSum sum;
    sum.add(16777216.0f);
    sum.add(1.0f);
    EXPECT_EQ(sum.total(true), 16777216.0);
    sum.add(1e-30f);  // beyond half way: rounded once, up
    EXPECT_EQ(sum.total(true), 16777218.0);
    EXPECT_EQ(sum.total(), 16777217.0);
}

TEST(ExactSums, OfDecimalsDoNotDependOnOrder) {
    RandomDecimals random;
    std::mt19937_64 shuffle(3);
    for (int round = 0; round < 500; ++round) {
        std::vector<Decimal> values;
        for (int i = 0; i < 30; ++i) {
            values.push_back(random());
            if (i % 2)
                values.push_back(
                    {-values[static_cast<std::size_t>(i)].mantissa, values[static_cast<std::size_t>(i)].scale});
        }
        std::string first;
        for (int order = 0; order < 4; ++order) {
            ExactDecimalSum sum;
            for (const Decimal& value : values) sum.add(value);
            const auto total = sum.total();
            const std::string text = total ? decimal_text(*total) : "overflow";
            if (order == 0) first = text;
            EXPECT_EQ(text, first);
            std::shuffle(values.begin(), values.end(), shuffle);
        }
    }
}

}  // namespace
}  // namespace penstock::expr
