// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/core/data_type.hpp>
#include <spark_comm/core/detail/immortal.hpp>
#include <spark_comm/core/error.hpp>
#include <spark_comm/core/time.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <source_location>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace spark_comm {
namespace {

class category final : public std::error_category {
 public:
  [[nodiscard]] const char* name() const noexcept override { return "spark_comm"; }

  [[nodiscard]] std::string message(int value) const override {
    return std::string{name_of(static_cast<errc>(value))};
  }
};

// CUDA errors after which every later call of the process fails as well: the context is gone.
// Source: CUresult in cuda.h, CUDA 13.0 ("the context cannot be used" in the comments).
constexpr std::array<std::int64_t, 13> sticky_cuda_errors = {
    4,    // deinitialized
    214,  // uncorrectable ECC error
    220,  // NVLink uncorrectable
    700,  // illegal address
    702,  // launch timeout
    710,  // device-side assert
    714,  // hardware stack error
    715,  // illegal instruction
    716,  // misaligned address
    717,  // invalid address space
    718,  // invalid program counter
    719,  // launch failure
    721,  // contained
};

std::string short_file(const char* path) {
  const std::string_view full{path};
  const auto slash = full.rfind('/');
  return std::string{slash == std::string_view::npos ? full : full.substr(slash + 1)};
}

std::string subject(const error_context& context) {
  std::string text = context.operation;
  const auto append = [&text](const std::string& part) {
    text += text.empty() ? part : " " + part;
  };
  if (context.sequence) {
    append(fmt::format("#{}", *context.sequence));
  }
  if (context.count_elements && context.dtype) {
    append(fmt::format("({} x {})", *context.count_elements, name_of(*context.dtype)));
  } else if (context.count_elements) {
    append(fmt::format("({} elements)", *context.count_elements));
  } else if (context.dtype) {
    append(fmt::format("({})", name_of(*context.dtype)));
  }
  if (!context.communicator.empty()) {
    append(fmt::format("on '{}'", context.communicator));
  }
  if (context.world_size > 0) {
    append(fmt::format("rank {}/{}", context.rank, context.world_size));
  } else if (context.rank >= 0) {
    append(fmt::format("rank {}", context.rank));
  }
  if (context.device >= 0) {
    append(fmt::format("device {}", context.device));
  }
  return text;
}

std::string as_one_line(std::string text) {
  std::ranges::replace(text, '\n', ' ');
  std::ranges::replace(text, '\r', ' ');
  return text;
}

std::string compose(errc code,
                    const std::string& message,
                    const error_context& context,
                    const native_code& native,
                    const std::source_location& where) {
  std::string line = subject(context);
  line += line.empty() ? message : ": " + message;
  if (!context.peers.empty()) {
    line += fmt::format(
        "; rank{} {}", context.peers.size() == 1 ? "" : "s", fmt::join(context.peers, ", "));
  }
  if (context.deadline) {
    const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(*context.deadline);
    line += fmt::format("; deadline {} ms", ms.count());
  }
  if (native.domain != native_domain::none) {
    line += fmt::format("; {} returned {} ({})", native.function, native.number, native.text);
  }
  line += fmt::format(" [{}, {}] ({}:{})",
                      name_of(code),
                      name_of(recovery_for(code, native)),
                      short_file(where.file_name()),
                      where.line());
  return as_one_line(std::move(line));
}

}  // namespace

std::string_view name_of(errc code) noexcept {
  switch (code) {
    case errc::invalid_argument: return "invalid_argument";
    case errc::invalid_usage:    return "invalid_usage";
    case errc::mismatch:         return "mismatch";
    case errc::timed_out:        return "timed_out";
    case errc::peer_lost:        return "peer_lost";
    case errc::aborted:          return "aborted";
    case errc::not_supported:    return "not_supported";
    case errc::out_of_memory:    return "out_of_memory";
    case errc::device_failed:    return "device_failed";
    case errc::system_failed:    return "system_failed";
    case errc::internal:         return "internal";
  }
  return "unknown";
}

std::string_view name_of(recovery action) noexcept {
  switch (action) {
    case recovery::fix_call:        return "fix_call";
    case recovery::retry:           return "retry";
    case recovery::reconnect:       return "reconnect";
    case recovery::restart_process: return "restart_process";
  }
  return "unknown";
}

const std::error_category& error_category() noexcept {
  static const detail::immortal<category> instance;
  return instance.get();
}

std::error_code make_error_code(errc code) noexcept {
  return {static_cast<int>(code), error_category()};
}

recovery recovery_for(errc code, const native_code& native) noexcept {
  switch (code) {
    case errc::invalid_argument:
    case errc::not_supported:    return recovery::fix_call;
    case errc::invalid_usage:
      // Ours is found before anything happened; NCCL's leaves the communicator in doubt.
      return native.domain == native_domain::nccl ? recovery::reconnect : recovery::fix_call;
    case errc::out_of_memory: return recovery::retry;
    case errc::mismatch:
    case errc::timed_out:
    case errc::peer_lost:
    case errc::aborted:
    case errc::system_failed:
    case errc::internal:      return recovery::reconnect;
    case errc::device_failed:
      return native.domain == native_domain::cuda &&
                     std::ranges::find(sticky_cuda_errors, native.number) !=
                         sticky_cuda_errors.end()
                 ? recovery::restart_process
                 : recovery::reconnect;
  }
  return recovery::reconnect;
}

error::error(errc code,
             std::string message,
             error_context context,
             native_code native,
             std::source_location where)
    : std::system_error(make_error_code(code)),
      kind_(code),
      message_(std::move(message)),
      context_(std::move(context)),
      native_(std::move(native)),
      where_(where),
      line_(compose(kind_, message_, context_, native_, where_)) {}

error error::with_context(const error_context& outer) const {
  error_context merged = context_;
  if (merged.communicator.empty()) {
    merged.communicator = outer.communicator;
  }
  if (merged.world_size == 0) {
    merged.rank = outer.rank;
    merged.world_size = outer.world_size;
  }
  if (merged.device < 0) {
    merged.device = outer.device;
  }
  if (merged.operation.empty()) {
    merged.operation = outer.operation;
  }
  if (!merged.sequence) {
    merged.sequence = outer.sequence;
  }
  if (!merged.count_elements) {
    merged.count_elements = outer.count_elements;
  }
  if (!merged.dtype) {
    merged.dtype = outer.dtype;
  }
  if (merged.peers.empty()) {
    merged.peers = outer.peers;
  }
  if (!merged.deadline) {
    merged.deadline = outer.deadline;
  }
  return error{kind_, message_, std::move(merged), native_, where_};
}

void throw_errno(std::string_view function,
                 std::string message,
                 int number,
                 std::source_location where) {
  native_code native{.domain = native_domain::system,
                     .number = number,
                     .function = std::string{function},
                     .text = std::generic_category().message(number)};
  throw error{number == ENOMEM ? errc::out_of_memory : errc::system_failed,
              std::move(message),
              {},
              std::move(native),
              where};
}

}  // namespace spark_comm
