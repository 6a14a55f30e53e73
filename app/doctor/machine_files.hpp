// SPDX-License-Identifier: AGPL-3.0-only
// What `doctor` reads of a machine: small files by their path. From the running system, from a
// folder that looks like one, or from a recording, so that a machine can be judged elsewhere.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace spark_comm::app::doctor {

/// Texts by path, without the leading slash: "sys/class/net/eth0/mtu".
class machine_files {
 public:
  /// What is under `root`, which is "/" for this machine.
  ///
  /// Device files are told by the access that this process has ("rw", "r", "none"), libraries by
  /// their version and a hash; of the environment only what concerns communication is kept, and no
  /// key.
  /// Throws: failure (not_available) when `root` is no folder.
  [[nodiscard]] static machine_files read(const std::string& root);

  /// The byte counters of all ports, and nothing else: cheap enough to be read twice.
  [[nodiscard]] static machine_files read_counters(const std::string& root);

  /// From a recording. Throws: failure (usage) when the text is none.
  [[nodiscard]] static machine_files parse(std::string_view recording);

  /// `read` for a folder, `parse` for a file.
  [[nodiscard]] static machine_files open(const std::string& folder_or_recording);

  /// One text that `parse` reads back.
  [[nodiscard]] std::string to_recording() const;

  void put(const std::string& path, std::string text) { texts_[path] = std::move(text); }

  void remove(const std::string& beginning);

  [[nodiscard]] bool has(const std::string& path) const { return texts_.contains(path); }

  /// Without white space at the end; empty when it is not there.
  [[nodiscard]] std::string text(const std::string& path) const;

  /// The first whole number in the text.
  [[nodiscard]] std::optional<long long> number(const std::string& path) const;

  /// The names directly under a folder.
  [[nodiscard]] std::vector<std::string> names_in(const std::string& folder) const;

  [[nodiscard]] std::vector<std::string> paths() const;

  friend bool operator==(const machine_files&, const machine_files&) = default;

 private:
  std::map<std::string, std::string> texts_;
};

}  // namespace spark_comm::app::doctor
