// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/comm/runtime.hpp>
#include <spark_comm/core/diagnostics.hpp>
#include <spark_comm/core/error.hpp>
#include <spark_comm/core/shared_library.hpp>
#include <spark_comm/cuda/driver.hpp>
#include <spark_comm/nccl/library.hpp>

#include <cstdlib>
#include <filesystem>
#include <fmt/format.h>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace spark_comm {

struct runtime::state {
  runtime_kind kind;
  cuda::driver driver;
  nccl::library library;
  std::string description;
};

namespace {

constexpr const char* host_library_name = "libspark_comm_host.so";

std::string variable(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): read once, at load
  return value == nullptr ? std::string{} : std::string{value};
}

std::string describe(runtime_kind kind,
                     const cuda::driver& driver,
                     const nccl::library& library,
                     std::string_view reason) {
  const int cuda = driver.version();
  return fmt::format("{} runtime: NCCL {} ({}), CUDA driver {}.{} ({}), {} device{}; {}",
                     name_of(kind),
                     nccl::version_text(library.version()),
                     library.file(),
                     cuda / 1000,
                     cuda % 1000 / 10,
                     driver.file(),
                     driver.device_count(),
                     driver.device_count() == 1 ? "" : "s",
                     reason);
}

// Beside the file that holds this code; the loader's own search (and so this file's run path) next.
std::string host_library_path(const runtime_options& options) {
  if (!options.host_library.empty()) {
    return options.host_library;
  }
  const std::filesystem::path own =
      shared_library::file_of(reinterpret_cast<const void*>(&host_library_path));
  std::error_code ignored;
  const auto beside = own.parent_path() / host_library_name;
  return std::filesystem::exists(beside, ignored) ? beside.string() : host_library_name;
}

struct parts {
  cuda::driver driver;
  nccl::library library;
};

parts load_host(const runtime_options& options) {
  const std::string path = host_library_path(options);
  return {cuda::driver::load(path, options.log), nccl::library::load(path, options.log)};
}

cuda::driver load_nvidia_driver(const runtime_options& options) {
  cuda::driver driver = cuda::driver::load("libcuda.so.1", options.log);
  if (driver.device_count() == 0) {
    throw error{errc::not_supported, "the CUDA driver is there, but it shows no device"};
  }
  return driver;
}

nccl::library load_nccl(const runtime_options& options) {
  return nccl::library::load(options.nccl_library.empty() ? "libnccl.so.2" : options.nccl_library,
                             options.log);
}

// Why the NVIDIA runtime is not there; the first part that is missing decides.
struct nvidia_attempt {
  std::optional<parts> found;
  std::string reason;
};

nvidia_attempt try_nvidia(const runtime_options& options) {
  std::optional<cuda::driver> driver;
  try {
    driver = load_nvidia_driver(options);
  } catch (const error& failure) {
    return {std::nullopt, failure.message()};
  }
  try {
    return {parts{*driver, load_nccl(options)}, {}};
  } catch (const error& failure) {
    if (!options.nccl_library.empty()) {
      throw;  // the program named a library: another one in its place would be a silent fallback
    }
    return {std::nullopt, failure.message()};
  }
}

}  // namespace

std::string_view name_of(runtime_kind kind) noexcept {
  switch (kind) {
    case runtime_kind::automatic: return "automatic";
    case runtime_kind::nvidia:    return "nvidia";
    case runtime_kind::host:      return "host";
  }
  return "unknown";
}

runtime_options runtime_options::from_environment() {
  return {.nccl_library = variable("SPARK_COMM_NCCL_LIBRARY"),
          .host_library = variable("SPARK_COMM_HOST_LIBRARY"),
          .log = {}};
}

runtime runtime::load(runtime_kind kind, const runtime_options& options) {
  const auto make = [&](runtime_kind chosen, parts found, std::string_view reason) {
    std::string text = describe(chosen, found.driver, found.library, reason);
    options.log.report(severity::info, text);
    return runtime{std::make_shared<const state>(
        state{chosen, std::move(found.driver), std::move(found.library), std::move(text)})};
  };
  switch (kind) {
    case runtime_kind::host: return make(runtime_kind::host, load_host(options), "asked for");
    case runtime_kind::nvidia:
      return make(
          runtime_kind::nvidia, {load_nvidia_driver(options), load_nccl(options)}, "asked for");
    case runtime_kind::automatic: {
      nvidia_attempt attempt = try_nvidia(options);
      if (attempt.found) {
        return make(runtime_kind::nvidia,
                    std::move(*attempt.found),
                    "chosen because driver, device and NCCL are there");
      }
      return make(
          runtime_kind::host,
          load_host(options),
          fmt::format("chosen because the NVIDIA runtime is not there: {}", attempt.reason));
    }
  }
  throw error{
      errc::invalid_argument,
      fmt::format("runtime kind {} is not automatic, nvidia or host", static_cast<int>(kind))};
}

runtime runtime::from_parts(runtime_kind kind, cuda::driver driver, nccl::library library) {
  return runtime{std::make_shared<const state>(
      state{kind, std::move(driver), std::move(library), "assembled by the program"})};
}

runtime_kind runtime::kind() const noexcept {
  return state_->kind;
}

const cuda::driver& runtime::driver() const noexcept {
  return state_->driver;
}

const nccl::library& runtime::library() const noexcept {
  return state_->library;
}

const diagnostics& runtime::log() const noexcept {
  return state_->library.log();
}

const std::string& runtime::description() const noexcept {
  return state_->description;
}

}  // namespace spark_comm
