// Bindings of mappings; signatures in _native.pyi.
#include <nanobind/nanobind.h>
#include <nanobind/stl/shared_ptr.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "answers/text_buffer.hpp"
#include "arrays.hpp"
#include "errors.hpp"
#include "mapping/avro_decoder.hpp"
#include "mapping/mapper.hpp"
#include "mapping/protobuf_decoder.hpp"
#include "spec.hpp"
#include "unlocked.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace penstock {
namespace {

using mapping::AvroSchema;
using mapping::MappedBatch;
using mapping::Mapper;
using mapping::Program;
using mapping::ProtobufSchema;

struct Message {
    std::string_view text;
    std::optional<std::int64_t> time;
};

/// Texts of the messages, which the list keeps alive. A message that is not text, or whose time is not an integer of 64
/// bits, has no text, and is declined.
std::vector<Message> messages_of(const nb::list& pairs) {
    std::vector<Message> found;
    found.reserve(nb::len(pairs));
    for (const nb::handle pair : pairs) {
        Message& message = found.emplace_back();
        if (!PyTuple_Check(pair.ptr()) || PyTuple_GET_SIZE(pair.ptr()) != 2) throw nb::type_error("pairs are expected");
        PyObject* const time = PyTuple_GET_ITEM(pair.ptr(), 0);
        PyObject* const text = PyTuple_GET_ITEM(pair.ptr(), 1);
        if (time != Py_None) {
            int overflow = 0;
            if (!PyLong_CheckExact(time)) continue;
            message.time = PyLong_AsLongLongAndOverflow(time, &overflow);
            if (overflow != 0) continue;
        }
        if (PyBytes_CheckExact(text)) {
            message.text = {PyBytes_AS_STRING(text), static_cast<std::size_t>(PyBytes_GET_SIZE(text))};
        } else if (PyUnicode_CheckExact(text)) {
            Py_ssize_t size = 0;
            const char* const bytes = PyUnicode_AsUTF8AndSize(text, &size);
            if (bytes == nullptr) {
                PyErr_Clear();  // it has surrogates
                continue;
            }
            message.text = {bytes, static_cast<std::size_t>(size)};
        }
    }
    return found;
}

/// The result belongs to the caller.
MappedBatch* map(const std::shared_ptr<Program>& program, const nb::list& pairs, std::size_t max_bytes) {
    const nb::list snapshot = nb::list(nb::steal(PyList_GetSlice(pairs.ptr(), 0, PyList_GET_SIZE(pairs.ptr()))));
    const std::vector<Message> messages = messages_of(snapshot);
    auto batch = std::make_unique<MappedBatch>(program);
    const Unlocked released;
    Mapper mapper(*program, *batch);
    for (std::uint32_t i = 0; i < messages.size(); ++i) {
        const bool whole = messages[i].text.size() <= max_bytes;
        mapper.map(whole ? messages[i].text : std::string_view(), messages[i].time, i);
    }
    return batch.release();
}

/// For each message its JSON text, or as `str` the reason why it cannot be decoded. The first `skip` bytes of a message
/// are not part of the datum.
template <class Decode>
nb::list decoded(const nb::list& messages, std::size_t skip, std::size_t max_bytes, std::size_t max_factor,
                 Decode decode) {
    const nb::list snapshot = nb::list(nb::steal(PyList_GetSlice(messages.ptr(), 0, PyList_GET_SIZE(messages.ptr()))));
    std::vector<std::string_view> data;
    for (const nb::handle message : snapshot) {
        if (!PyBytes_CheckExact(message.ptr())) throw nb::type_error("bytes are expected");
        const auto size = static_cast<std::size_t>(PyBytes_GET_SIZE(message.ptr()));
        data.emplace_back(PyBytes_AS_STRING(message.ptr()), size);
        data.back().remove_prefix(std::min(skip, size));
    }
    TextBuffer texts;
    std::vector<std::size_t> ends;
    std::vector<std::pair<std::size_t, std::string>> reasons;
    {
        const Unlocked released;
        for (std::size_t i = 0; i < data.size(); ++i) {
            const std::size_t begin = texts.size();
            try {
                decode(data[i], max_bytes + max_factor * data[i].size(), texts);
            } catch (const DataError& error) {
                texts.shorten(begin);
                reasons.emplace_back(i, error.what());
            }
            ends.push_back(texts.size());
        }
    }
    nb::list made;
    std::size_t begin = 0;
    auto reason = reasons.begin();
    for (std::size_t i = 0; i < ends.size(); begin = ends[i++]) {
        if (reason != reasons.end() && reason->first == i) {
            made.append(nb::steal(PyUnicode_DecodeUTF8(reason->second.data(),
                                                       static_cast<Py_ssize_t>(reason->second.size()), "replace")));
            ++reason;
        } else {
            made.append(nb::bytes(texts.text().data() + begin, ends[i] - begin));
        }
    }
    return made;
}

nb::list decode_avro(const AvroSchema& schema, const nb::list& messages, std::size_t skip, std::size_t max_depth,
                     std::size_t max_bytes, std::size_t max_factor) {
    return decoded(messages, skip, max_bytes, max_factor,
                   [&](std::string_view data, std::size_t most, TextBuffer& texts) {
                       schema.decode(data, max_depth, most, texts);
                   });
}

nb::list decode_protobuf(const ProtobufSchema& schema, std::uint32_t root, const nb::list& messages, std::size_t skip,
                         std::size_t max_depth, std::size_t max_bytes, std::size_t max_factor) {
    return decoded(messages, skip, max_bytes, max_factor,
                   [&](std::string_view data, std::size_t most, TextBuffer& texts) {
                       schema.decode(root, data, max_depth, most, texts);
                   });
}

nb::object column(const std::vector<std::int64_t>& values) { return to_numpy(std::vector<std::int64_t>(values)); }

}  // namespace
}  // namespace penstock

void bind_mapping(nb::module_& m) {
    using namespace penstock;
    nb::class_<MappedBatch>(m, "MappedBatch")
        .def("__len__", &MappedBatch::events)
        .def_prop_ro("times", [](const MappedBatch& batch) { return column(batch.times); })
        .def_prop_ro("counts", [](const MappedBatch& batch) { return column(batch.counts); })
        .def_prop_ro("messages",
                     [](const MappedBatch& batch) {
                         return column(std::vector<std::int64_t>(batch.messages.begin(), batch.messages.end()));
                     })
        .def_prop_ro("declined",
                     [](const MappedBatch& batch) {
                         nb::list positions;
                         for (const std::uint32_t position : batch.declined) positions.append(position);
                         return positions;
                     })
        .def(
            "intern",
            [](const MappedBatch& batch, Dictionary& dictionary, BlankScope* scope) {
                mapping::MappedColumns columns;
                {
                    const Unlocked released;
                    columns = batch.intern(dictionary, scope);
                }
                return nb::make_tuple(to_numpy(std::move(columns.subjects)), to_numpy(std::move(columns.predicates)),
                                      to_numpy(std::move(columns.objects)));
            },
            "dictionary"_a, "scope"_a.none() = nb::none())
        .def(
            "ntriples",
            [](const MappedBatch& batch, std::size_t event) {
                if (event >= batch.events()) throw nb::index_error("no such event");
                TextBuffer out;
                batch.write(out, event);
                return nb::bytes(out.text().data(), out.text().size());
            },
            "event"_a);
    nb::class_<Program>(m, "MappingProgram")
        .def(
            "__init__", [](Program* place, const nb::handle& spec) { new (place) Program(to_spec(spec)); }, "spec"_a)
        .def("map", &map, "messages"_a, "max_bytes"_a);
    m.def(
        "complete_csv_rows", [](const nb::bytes& text) { return mapping::complete_rows({text.c_str(), text.size()}); },
        "text"_a);
    nb::class_<AvroSchema>(m, "AvroSchema")
        .def(
            "__init__", [](AvroSchema* place, const nb::handle& spec) { new (place) AvroSchema(to_spec(spec)); },
            "spec"_a)
        .def("decode", &decode_avro, "messages"_a, "skip"_a, "max_depth"_a, "max_bytes"_a, "max_factor"_a);
    nb::class_<ProtobufSchema>(m, "ProtobufSchema")
        .def(
            "__init__",
            [](ProtobufSchema* place, const nb::handle& spec) { new (place) ProtobufSchema(to_spec(spec)); }, "spec"_a)
        .def("decode", &decode_protobuf, "root"_a, "messages"_a, "skip"_a, "max_depth"_a, "max_bytes"_a,
             "max_factor"_a);
}
