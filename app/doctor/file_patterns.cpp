// SPDX-License-Identifier: AGPL-3.0-only
#include "doctor/file_patterns.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <glob.h>
#include <iterator>
#include <string>
#include <string_view>
#include <system_error>
#include <unistd.h>
#include <utility>
#include <vector>

namespace spark_comm::app::doctor {
namespace {

constexpr std::size_t most_bytes = 64 << 10U;  // of one text file

constexpr const char* text_patterns[] = {
    "etc/nccl.conf",
    "ip-address",
    "proc/driver/nvidia/gpus/*/information",
    "proc/driver/nvidia/version",
    "proc/meminfo",
    "proc/self/limits",
    "proc/self/mounts",
    "proc/sys/kernel/hostname",
    "proc/sys/kernel/osrelease",
    "sys/bus/pci/drivers/nvidia/*/current_link_width",
    "sys/bus/pci/drivers/nvidia/*/max_link_width",
    "sys/class/dmi/id/product_name",
    "sys/class/infiniband/*/device/current_link_speed",
    "sys/class/infiniband/*/device/current_link_width",
    "sys/class/infiniband/*/device/max_link_speed",
    "sys/class/infiniband/*/device/max_link_width",
    "sys/class/infiniband/*/device/net/*/mtu",
    "sys/class/infiniband/*/device/uevent",
    "sys/class/infiniband/*/ports/*/gid_attrs/ndevs/*",
    "sys/class/infiniband/*/ports/*/gid_attrs/types/*",
    "sys/class/infiniband/*/ports/*/gids/*",
    "sys/class/infiniband/*/ports/*/link_layer",
    "sys/class/infiniband/*/ports/*/rate",
    "sys/class/infiniband/*/ports/*/state",
    "sys/class/net/*/mtu",
    "sys/class/net/*/operstate",
    "sys/class/net/*/speed",
    "usr/local/cuda/version.json",
};

constexpr const char* counter_patterns[] = {
    "sys/class/infiniband/*/ports/*/counters/port_rcv_data",
    "sys/class/infiniband/*/ports/*/counters/port_xmit_data",
    "sys/class/net/*/statistics/rx_bytes",
    "sys/class/net/*/statistics/tx_bytes",
};

constexpr const char* device_patterns[] = {
    "dev/infiniband/*",
    "dev/nvidia*",
    "dev/nvidia-caps-imex-channels/*",
};

constexpr const char* library_patterns[] = {
    "lib/*/libcuda.so.1",
    "lib64/libcuda.so.1",
    "usr/lib/*/libcuda.so.1",
    "usr/lib/*/libnccl.so.2",
    "usr/lib64/libcuda.so.1",
    "usr/lib64/libnccl.so.2",
    "usr/local/cuda/lib64/libnccl.so.2",
    "usr/local/lib/libnccl.so.2",
    "usr/local/lib/python3*/dist-packages/nvidia/nccl/lib/libnccl.so.2",
};

std::vector<std::string> matches_of(const std::string& root, const std::string& pattern) {
  std::string escaped;
  for (const char letter : root) {
    escaped += std::string_view{"*?[\\"}.find(letter) == std::string_view::npos ? "" : "\\";
    escaped += letter;
  }
  glob_t result{};
  std::vector<std::string> paths;
  if (::glob((escaped + "/" + pattern).c_str(), 0, nullptr, &result) == 0) {
    for (std::size_t i = 0; i < result.gl_pathc; ++i) {
      paths.emplace_back(result.gl_pathv[i]);
    }
  }
  ::globfree(&result);
  return paths;
}

bool is_file(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored);
}

std::string beginning_of(const std::string& path) {
  std::ifstream file{path, std::ios::binary};
  std::string text(most_bytes, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(std::max<std::streamsize>(file.gcount(), 0)));
  return text;
}

std::string access_to(const std::string& path) {
  const bool reads = ::access(path.c_str(), R_OK) == 0;
  return reads && ::access(path.c_str(), W_OK) == 0 ? "rw" : reads ? "r" : "none";
}

/// "2.28.9+cuda13.0", as it stands in a file of NCCL; empty for another file.
std::string version_in(std::string_view content) {
  constexpr std::string_view mark = "NCCL version ";
  for (std::size_t at = content.find(mark); at != std::string_view::npos;
       at = content.find(mark, at + 1)) {
    const std::string_view rest = content.substr(at + mark.size());
    const std::string_view version =
        rest.substr(0, std::min(rest.find_first_not_of("0123456789.+cuda"), rest.size()));
    if (version.find("+cuda") != std::string_view::npos) {
      return std::string{version};
    }
  }
  return {};
}

/// Tells builds apart, and guards against nobody: eight bytes at a time, because a library has
/// hundreds of millions.
/// Source: FNV-1a, 64 bits.
std::uint64_t hash_of(std::string_view content) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (std::size_t at = 0; at < content.size(); at += sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, content.data() + at, std::min(sizeof word, content.size() - at));
    hash = (hash ^ word) * 0x100000001b3U;
    hash ^= hash >> 32U;  // a product carries upwards only
  }
  return hash;
}

std::string whole_file(const std::string& path) {
  std::error_code failure;
  const std::uintmax_t bytes = std::filesystem::file_size(path, failure);
  std::string content(failure ? 0 : bytes, '\0');
  std::ifstream{path, std::ios::binary}.read(content.data(),
                                             static_cast<std::streamsize>(content.size()));
  return content;
}

/// What it is, and which file; a link is told as where it leads.
std::string describe_library(const std::string& root, const std::string& path) {
  std::error_code ignored;
  std::string real = std::filesystem::canonical(path, ignored).string();
  real = real.starts_with(root + "/") ? real.substr(root.size()) : real;
  if (path.find("libnccl") == std::string::npos) {
    return fmt::format("file {}\n", real);
  }
  const std::string content = whole_file(path);
  return fmt::format(
      "file {}\nversion {}\nhash {:016x}\n", real, version_in(content), hash_of(content));
}

/// Folders that the loader searches before its own.
std::vector<std::string> loader_folders(const std::string& environment) {
  std::vector<std::string> folders;
  std::string list = variable_in(environment, "LD_LIBRARY_PATH");
  while (!list.empty()) {
    const std::size_t colon = std::min(list.find(':'), list.size());
    if (list.front() == '/') {
      folders.push_back(list.substr(1, colon - 1));
    }
    list.erase(0, colon + 1);
  }
  return folders;
}

bool concerns_us(std::string_view name) {
  constexpr std::array<std::string_view, 5> beginnings = {
      "NC", "NVCL", "SPARK", "OMPI_COMM_WORLD_", "PMIX_"};
  constexpr std::array<std::string_view, 7> others = {"CUDA_VISIBLE_DEVICES",
                                                      "HOME",
                                                      "LD_LIBRARY_PATH",
                                                      "MASTER_ADDR",
                                                      "MASTER_PORT",
                                                      "RANK",
                                                      "WORLD_SIZE"};
  return std::ranges::any_of(beginnings, [&](auto each) { return name.starts_with(each); }) ||
         std::ranges::find(others, name) != others.end();
}

bool is_secret(std::string_view name) {
  const auto names = [&](std::string_view part) { return name.find(part) != name.npos; };
  return (names("KEY") && !names("PKEY") && !names("FILE")) || names("PSK") || names("COMM_ID") ||
         names("TOKEN") || names("SECRET") || names("PASS");
}

void add_texts(const std::string& root, const std::string& pattern, std::vector<found_file>& to) {
  for (const std::string& path : matches_of(root, pattern)) {
    std::string text = is_file(path) ? beginning_of(path) : std::string{};
    const bool is_empty_gid = path.find("/gids/") != std::string::npos &&
                              text.find_first_not_of("0:\n") == std::string::npos;
    if (!text.empty() && !is_empty_gid) {
      to.push_back({.path = path.substr(root.size() + 1), .text = std::move(text)});
    }
  }
}

}  // namespace

std::vector<found_file> find_counters(const std::string& root) {
  std::vector<found_file> found;
  for (const char* const pattern : counter_patterns) {
    add_texts(root, pattern, found);
  }
  return found;
}

std::string environment_in(const std::string& root) {
  std::string kept;
  std::string all = beginning_of(root + "/proc/self/environ");
  all += '\0';
  for (std::size_t begin = 0, end = 0; (end = all.find('\0', begin)) != std::string::npos;
       begin = end + 1) {
    std::string entry = all.substr(begin, end - begin);
    const std::string name = entry.substr(0, entry.find('='));
    if (name.size() == entry.size() || !concerns_us(name)) {
      continue;
    }
    std::ranges::replace(entry, '\n', ' ');
    kept += (is_secret(name) ? name + "=(hidden)" : entry) + "\n";
  }
  return kept;
}

std::string variable_in(const std::string& environment, const std::string& name) {
  const std::string text = "\n" + environment;
  const std::size_t at = text.find("\n" + name + "=");
  if (at == std::string::npos) {
    return {};
  }
  const std::size_t begin = at + name.size() + 2;
  return text.substr(begin, text.find('\n', begin) - begin);
}

std::vector<found_file> find_files(const std::string& root, const std::string& environment) {
  std::vector<found_file> found;
  const auto add = [&](const std::string& path, std::string text) {
    found.push_back({.path = path.substr(root.size() + 1), .text = std::move(text)});
  };
  std::vector<std::string> texts{std::begin(text_patterns), std::end(text_patterns)};
  for (const char* const variable : {"HOME", "NCCL_CONF_FILE"}) {
    const std::string path = variable_in(environment, variable);
    if (path.starts_with('/')) {
      texts.push_back(path.substr(1) + (variable[0] == 'H' ? "/.nccl.conf" : ""));
    }
  }
  for (const std::string& pattern : texts) {
    add_texts(root, pattern, found);
  }
  for (const char* const pattern : device_patterns) {
    for (const std::string& path : matches_of(root, pattern)) {
      add(path, access_to(path));
    }
  }
  std::vector<std::string> libraries;
  for (const std::string& folder : loader_folders(environment)) {
    libraries.push_back(folder + "/libnccl.so.2");
  }
  libraries.insert(libraries.end(), std::begin(library_patterns), std::end(library_patterns));
  for (const std::string& pattern : libraries) {
    for (const std::string& path : matches_of(root, pattern)) {
      add(path, describe_library(root, path));
    }
  }
  return found;
}

}  // namespace spark_comm::app::doctor
