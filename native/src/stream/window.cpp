#include "stream/window.hpp"

#include "stream/window_index.hpp"

namespace penstock {

Window::Window(const SliceSource& stream) : stream_(stream), index_(std::make_unique<WindowIndex>()) {}
Window::~Window() = default;

std::size_t Window::size() const { return index_->distinct(); }
std::size_t Window::bytes() const { return index_->bytes(); }

void Window::expand(std::span<const TermId> keys, Label label, Dir dir, Matches& out) const {
    index_->expand(keys, label, dir, out);
}
void Window::contains(std::span<const TermId> subjects, Label label, std::span<const TermId> objects,
                      std::span<std::uint8_t> found) const {
    index_->contains(subjects, label, objects, found);
}
void Window::vertices(Label label, Dir dir, std::vector<TermId>& out) const { index_->vertices(label, dir, out); }
void Window::labels_of(std::span<const TermId> keys, Dir dir, std::vector<std::uint32_t>& rows,
                       std::vector<Label>& labels) const {
    index_->labels_of(keys, dir, rows, labels);
}
void Window::edges(Label label, std::vector<TermId>& subjects, std::vector<TermId>& objects) const {
    index_->edges(label, subjects, objects);
}
void Window::labels(std::vector<Label>& out) const { index_->labels(out); }
std::uint64_t Window::edge_count(Label label) const { return index_->edge_count(label); }
LabelStats Window::stats(Label label) const { return index_->stats(label); }
std::uint64_t Window::degree(TermId vertex, Label label, Dir dir) const { return index_->degree(vertex, label, dir); }
std::int64_t Window::latest(TermId subject, Label label, TermId object) const {
    return index_->latest(subject, label, object);
}
const EdgeChanges* Window::changes() const { return index_->changes(); }
std::uint64_t Window::version() const { return index_->version(); }
bool Window::changed_since(std::uint64_t version, std::span<const TermId> keys, Label label, Dir dir,
                           std::vector<std::uint32_t>& rows) const {
    return index_->changed_since(version, keys, label, dir, rows);
}

}  // namespace penstock
