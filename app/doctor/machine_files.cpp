// SPDX-License-Identifier: AGPL-3.0-only
#include "doctor/machine_files.hpp"

#include "doctor/file_patterns.hpp"
#include "exit_code.hpp"

#include <spark_comm/rendezvous/network_port.hpp>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstddef>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace spark_comm::app::doctor {
namespace {

constexpr std::string_view first_line = "spark-comm machine recording 1\n";
constexpr std::string_view path_mark = "== ";

/// As `ip -o address` prints it, so that a folder can be recorded by hand.
std::string addresses_of_this_machine() {
  std::string text;
  for (const rendezvous::network_port& port : rendezvous::local_ports()) {
    const bool is_ipv6 = port.address.find(':') != std::string::npos;
    text += fmt::format("0: {} {} {}/{}\n",
                        port.interface,
                        is_ipv6 ? "inet6" : "inet",
                        port.address,
                        port.prefix_length);
  }
  return text;
}

}  // namespace

machine_files machine_files::read(const std::string& root) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(root, ignored)) {
    throw failure(exit_code::not_available, fmt::format("doctor: {} is no folder", root));
  }
  machine_files files;
  const std::string base = root == "/" ? "" : root;
  files.put("proc/self/environ", environment_in(base));
  for (const found_file& found : find_files(base, files.text("proc/self/environ"))) {
    files.put(found.path, found.text);
  }
  if (base.empty()) {
    files.put("ip-address", addresses_of_this_machine());
  }
  return files;
}

machine_files machine_files::read_counters(const std::string& root) {
  machine_files files;
  for (const found_file& found : find_counters(root == "/" ? "" : root)) {
    files.put(found.path, found.text);
  }
  return files;
}

machine_files machine_files::parse(std::string_view recording) {
  if (!recording.starts_with(first_line)) {
    throw usage_failure("doctor: no recording of a machine: its first line is not '" +
                        std::string{first_line.substr(0, first_line.size() - 1)} + "'");
  }
  recording.remove_prefix(first_line.size());
  machine_files files;
  std::string* current = nullptr;
  while (!recording.empty()) {
    const std::size_t end = std::min(recording.find('\n'), recording.size() - 1) + 1;
    const std::string_view line = recording.substr(0, end);
    recording.remove_prefix(end);
    if (line.starts_with(path_mark)) {
      const std::string_view path = line.substr(path_mark.size());
      current = &files.texts_[std::string{path.substr(0, path.find('\n'))}];
    } else if (current != nullptr) {
      *current += line;
    }
  }
  return files;
}

machine_files machine_files::open(const std::string& folder_or_recording) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(folder_or_recording, ignored)) {
    return read(folder_or_recording);
  }
  std::ifstream file{folder_or_recording};
  return parse(std::string{std::istreambuf_iterator<char>{file}, {}});
}

std::string machine_files::to_recording() const {
  std::string out{first_line};
  for (const auto& [path, text] : texts_) {
    out += fmt::format("{}{}\n{}{}", path_mark, path, text, text.ends_with('\n') ? "" : "\n");
  }
  return out;
}

void machine_files::remove(const std::string& beginning) {
  std::erase_if(texts_, [&](const auto& entry) { return entry.first.starts_with(beginning); });
}

std::string machine_files::text(const std::string& path) const {
  const auto at = texts_.find(path);
  if (at == texts_.end()) {
    return {};
  }
  std::string text = at->second;
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0) {
    text.pop_back();
  }
  return text;
}

std::optional<long long> machine_files::number(const std::string& path) const {
  const std::string whole = text(path);
  const std::size_t first = whole.find_first_of("-0123456789");
  if (first == std::string::npos) {
    return std::nullopt;
  }
  long long value = 0;
  const auto [stop, failure] =
      std::from_chars(whole.data() + first, whole.data() + whole.size(), value);
  return failure == std::errc{} ? std::optional{value} : std::nullopt;
}

std::vector<std::string> machine_files::names_in(const std::string& folder) const {
  const std::string beginning = folder + "/";
  std::vector<std::string> names;
  for (auto at = texts_.lower_bound(beginning);
       at != texts_.end() && at->first.starts_with(beginning);
       ++at) {
    const std::string rest = at->first.substr(beginning.size());
    std::string name = rest.substr(0, rest.find('/'));
    if (names.empty() || names.back() != name) {
      names.push_back(std::move(name));
    }
  }
  return names;
}

std::vector<std::string> machine_files::paths() const {
  std::vector<std::string> all;
  all.reserve(texts_.size());
  for (const auto& [path, text] : texts_) {
    all.push_back(path);
  }
  return all;
}

}  // namespace spark_comm::app::doctor
