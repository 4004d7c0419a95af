#include "exec/ranked_rows.hpp"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <ranges>
#include <utility>

namespace penstock::exec {

namespace {
constexpr std::size_t kSample = 1024;  // rows among which the bounds of new leaves are chosen
constexpr std::size_t kGrowth = 4;     // each leaf near the front is larger by this factor than the one before
}  // namespace

RankedRows::RankedRows(const RankedShape& shape, std::size_t first, std::size_t slack)
    : shape_(shape), first_(first), slack_(std::max(slack, first)), front_(shape.width), pending_(shape.width) {}

int RankedRows::compare(const TermId* a, const TermId* b, const LocalTerms& terms) const {
    const auto cells_of = [](const TermId* row) { return [row](std::size_t column) { return row[column]; }; };
    return compare_rows(shape_.keys, shape_.carried, cells_of(a), cells_of(b), terms);
}

/// As compare_rows(), with a row whose terms may have left the dictionary.
bool RankedRows::before(const TermId* row, const Bound& bound, const LocalTerms& terms) const {
    int order = first_difference(
        shape_.keys, [&](std::size_t k) { return value_compare(row[shape_.keys[k].column], bound.keys[k], terms); });
    if (order == 0)
        order = first_difference(shape_.keys, [&](std::size_t k) {
            return order_compare(row[shape_.keys[k].column], bound.keys[k], terms);
        });
    if (order != 0) return order < 0;
    return std::lexicographical_compare(row, row + shape_.carried, bound.cells.begin(), bound.cells.end());
}

RankedRows::Bound RankedRows::bound(const TermId* row, const LocalTerms& terms) const {
    Bound out{{row, row + shape_.carried}, {}};
    for (const SortKey& key : shape_.keys) out.keys.emplace_back(row[key.column], terms);
    return out;
}

void RankedRows::add(const TermId* row, std::int64_t count, const LocalTerms& terms) {
    changed_ = true;
    const auto [from, to] = candidates(row);
    const auto next = std::partition_point(from, to, [&](const Leaf& leaf) { return !before(row, leaf.from, terms); });
    if (next == leaves_.begin()) return pending_.push(row, count);
    Leaf& leaf = *std::prev(next);
    leaf.rows.push(row, count);
    leaf.total += count;
}

/// The leaves among which the first leaf after a row is, or the end of these. Others are excluded by the first sort
/// key.
auto RankedRows::candidates(const TermId* row) -> std::pair<Leaves::iterator, Leaves::iterator> {
    if (starts_.empty()) return {leaves_.begin(), leaves_.end()};
    const SortKey& key = shape_.keys.front();
    if (tag_of(row[key.column]) != Tag::Integer) return {leaves_.begin(), leaves_.end()};
    const std::int64_t value = start_of(row[key.column]);
    const std::int64_t* first = starts_.data();
    for (std::size_t left = starts_.size(); left > 0;) {  // without a branch that depends on the value
        const std::size_t half = (left + 1) / 2;
        first += first[half - 1] < value ? half : 0;
        left -= half;
    }
    const auto from = first - starts_.data();
    auto to = from;
    while (to < std::ssize(starts_) && starts_[static_cast<std::size_t>(to)] == value) ++to;
    return {leaves_.begin() + from, leaves_.begin() + to};
}

std::int64_t RankedRows::start_of(TermId key) const {
    return shape_.keys.front().descending ? -integer_value(key) : integer_value(key);
}

void RankedRows::list_starts() {
    starts_.clear();
    if (shape_.keys.empty()) return;
    for (const Leaf& leaf : leaves_) {
        const TermId key = leaf.from.keys.front().id();
        if (tag_of(key) != Tag::Integer) return starts_.clear();
        starts_.push_back(start_of(key));
    }
}

void RankedRows::settle(ExprContext& context) {
    if (!std::exchange(changed_, false)) return;
    starts_.clear();
    if (pending_.size() > 4 * most())
        make_leaf_of_all(context);
    else
        merge(context);
    tidy(context);
    while (in_front_ < static_cast<std::int64_t>(first_) && !leaves_.empty()) refill(context);
    if (front_.size() > most()) spill(context.terms);
    list_starts();
}

/// Over a partial dictionary, terms that are compared must be fetched first.
void RankedRows::require_keys(const CountedRows& rows, ExprContext& context) const {
    if (!context.terms.partial()) return;
    std::vector<TermId> ids;
    for (std::size_t i = 0; i < rows.size(); ++i)
        for (const SortKey& key : shape_.keys) ids.push_back(rows.row(i)[key.column]);
    context.budget.charge(static_cast<std::ptrdiff_t>(context.terms.dictionary().require(ids.data(), ids.size())));
}

/// Distinct rows in order.
CountedRows RankedRows::sorted(const CountedRows& rows, ExprContext& context) const {
    require_keys(rows, context);
    std::vector<std::uint32_t> order(rows.size());
    std::iota(order.begin(), order.end(), 0u);
    std::ranges::sort(
        order, [&](std::uint32_t a, std::uint32_t b) { return compare(rows.row(a), rows.row(b), context.terms) < 0; });
    CountedRows out(shape_.width);
    out.reserve(rows.size());
    for (const std::uint32_t i : order) out.append(rows, i, i + 1);
    return out;
}

/// Applies the pending changes to the front.
void RankedRows::merge(ExprContext& context) {
    if (pending_.empty()) return;
    pending_.sum(context.budget);
    const CountedRows changes = sorted(pending_, context);
    pending_.clear();
    require_keys(front_, context);
    CountedRows merged(shape_.width);
    merged.reserve(front_.size() + changes.size());
    std::size_t at = 0;
    for (std::size_t i = 0; i < changes.size(); ++i) {
        const TermId* row = changes.row(i);
        const auto rest = std::views::iota(at, front_.size());
        const std::size_t next = *std::ranges::partition_point(
            rest, [&](std::size_t j) { return compare(front_.row(j), row, context.terms) < 0; });
        merged.append(front_, at, next);
        at = next;
        std::int64_t count = changes.count(i);
        if (at < front_.size() && std::equal(row, row + shape_.carried, front_.row(at))) count += front_.count(at++);
        if (count != 0) merged.push(row, count);
    }
    merged.append(front_, at, front_.size());
    front_ = std::move(merged);
    in_front_ = front_.total();
}

/// Makes one leaf of the front and of its changes, which are too many to be sorted.
void RankedRows::make_leaf_of_all(ExprContext& context) {
    pending_.append(front_, 0, front_.size());
    front_.clear();
    in_front_ = 0;
    pending_.sum(context.budget);
    CountedRows all = std::exchange(pending_, CountedRows(shape_.width));
    if (all.empty()) return;
    require_keys(all, context);
    std::size_t least = 0;
    for (std::size_t i = 1; i < all.size(); ++i)
        if (compare(all.row(i), all.row(least), context.terms) < 0) least = i;
    Leaf leaf{bound(all.row(least), context.terms), std::move(all), 0, 0};
    leaf.total = leaf.rows.total();
    leaf.summed = leaf.rows.size();
    leaves_.insert(leaves_.begin(), std::move(leaf));
    if (leaves_.front().rows.size() > kMostInLeaf) divide(0, context);
}

void RankedRows::sum(Leaf& leaf, ExprContext& context) {
    leaf.rows.sum(context.budget);
    leaf.summed = leaf.rows.size();
}

/// Sums up the leaves of which many entries cancel out. Divides large ones, and drops empty ones.
void RankedRows::tidy(ExprContext& context) {
    for (std::size_t i = leaves_.size(); i-- > 0;) {
        Leaf& leaf = leaves_[i];
        const std::size_t size = leaf.rows.size();
        const auto rows = static_cast<std::size_t>(std::max<std::int64_t>(leaf.total, 0));
        if (size < 2 * rows + slack_ && (size <= kMostInLeaf || size < 2 * leaf.summed)) continue;
        sum(leaf, context);
        if (leaf.rows.empty())
            leaves_.erase(leaves_.begin() +
                          static_cast<std::ptrdiff_t>(i));  // its range becomes that of the leaf before
        else if (leaf.rows.size() > kMostInLeaf / 2)
            divide(i, context);
    }
}

/// Divides a leaf of distinct rows by rows of a sample: the first leaf into small ones near the front, others evenly.
void RankedRows::divide(std::size_t number, ExprContext& context) {
    Leaf whole = std::move(leaves_[number]);
    const std::size_t size = whole.rows.size();
    require_keys(whole.rows, context);
    CountedRows sample(shape_.width);
    const std::size_t samples = std::min(size, kSample);
    std::size_t jitter = size;
    for (std::size_t i = 0; i < samples; ++i) {
        // One row at random of each of `samples` parts of equal size.
        const std::size_t from = i * size / samples, end = (i + 1) * size / samples;
        jitter = jitter * 6364136223846793005u + 1442695040888963407u;
        const std::size_t at = from + (jitter >> 33) % (end - from);
        sample.append(whole.rows, at, at + 1);
    }
    sample = sorted(sample, context);
    std::vector<Leaf> parts;
    parts.push_back(Leaf{std::move(whole.from), CountedRows(shape_.width), 0, 0});
    std::size_t step = number == 0 ? slack_ : kMostInLeaf / 4;
    for (std::size_t end = step, last = 0; end < size; end += step) {
        const std::size_t at = std::max<std::size_t>(1, end * samples / size);
        if (at > last) parts.push_back(Leaf{bound(sample.row(at), context.terms), CountedRows(shape_.width), 0, 0});
        last = at;
        step = std::min(step * kGrowth, kMostInLeaf / 4);
    }
    for (std::size_t i = 0; i < size; ++i) {
        const TermId* row = whole.rows.row(i);
        const auto next = std::partition_point(std::next(parts.begin()), parts.end(), [&](const Leaf& leaf) {
            return !before(row, leaf.from, context.terms);
        });
        Leaf& leaf = *std::prev(next);
        leaf.rows.append(whole.rows, i, i + 1);
        leaf.total += whole.rows.count(i);
        ++leaf.summed;
        if ((i & 0xFFFF) == 0) context.budget.check();
    }
    std::erase_if(parts, [](const Leaf& leaf) { return leaf.rows.empty(); });
    const auto place = leaves_.erase(leaves_.begin() + static_cast<std::ptrdiff_t>(number));
    leaves_.insert(place, std::move_iterator(parts.begin()), std::move_iterator(parts.end()));
}

/// Moves the rows of the first leaf to the front, or divides it if they are many.
void RankedRows::refill(ExprContext& context) {
    Leaf& leaf = leaves_.front();
    sum(leaf, context);
    if (leaf.rows.size() > 2 * slack_) return divide(0, context);
    const CountedRows rows = sorted(leaf.rows, context);
    front_.append(rows, 0, rows.size());
    in_front_ += rows.total();
    leaves_.erase(leaves_.begin());
}

/// Moves the last rows of the front to the first leaf.
void RankedRows::spill(const LocalTerms& terms) {
    const std::size_t left = first_ + slack_;
    const TermId* from = front_.row(left);
    if (leaves_.empty() || leaves_.front().rows.size() > kMostInLeaf / 4)
        leaves_.insert(leaves_.begin(), Leaf{bound(from, terms), CountedRows(shape_.width), 0, 0});
    else
        leaves_.front().from = bound(from, terms);
    Leaf& leaf = leaves_.front();
    leaf.rows.append(front_, left, front_.size());
    leaf.summed += front_.size() - left;
    front_.truncate(left);
    const std::int64_t before = std::exchange(in_front_, front_.total());
    leaf.total += before - in_front_;
}

std::size_t RankedRows::size() const {
    std::size_t size = front_.size() + pending_.size();
    for (const Leaf& leaf : leaves_) size += leaf.rows.size();
    return size;
}

std::size_t RankedRows::bytes() const {
    std::size_t bytes = front_.bytes() + pending_.bytes() + starts_.capacity() * sizeof(std::int64_t);
    for (const Leaf& leaf : leaves_) {
        bytes += sizeof(Leaf) + leaf.rows.bytes() + leaf.from.cells.capacity() * sizeof(TermId);
        for (const TermCopy& term : leaf.from.keys) bytes += sizeof term + term.bytes();
    }
    return bytes;
}

}  // namespace penstock::exec
