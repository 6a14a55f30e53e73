// SPDX-License-Identifier: AGPL-3.0-only
#include "doctor/snapshot.hpp"

#include "doctor/machine_files.hpp"

#include <spark_comm/nccl/gid.hpp>
#include <spark_comm/rendezvous/network_port.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <fmt/format.h>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace spark_comm::app::doctor {
namespace {

/// The rest of the line that begins with `key`, without blanks around it.
std::string line_value(const std::string& text, const std::string& key) {
  std::istringstream lines{text};
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(key)) {
      const std::size_t first = line.find_first_not_of(" \t", key.size());
      const std::size_t last = line.find_last_not_of(" \t\r");
      return first == std::string::npos ? "" : line.substr(first, last + 1 - first);
    }
  }
  return {};
}

std::optional<long long> number_of(const std::string& text) {
  if (text.find_first_of("0123456789") != 0) {
    return std::nullopt;
  }
  return std::atoll(text.c_str());
}

double decimal_of(const std::string& text) {
  return std::strtod(text.c_str(), nullptr);  // "32.0 GT/s PCIe", "200 Gb/sec (4X HDR)"
}

pcie_link link_at(const machine_files& files, const std::string& folder) {
  const auto width = [&](const std::string& name) {
    return static_cast<int>(files.number(folder + name).value_or(0));
  };
  return {.speed_gts = decimal_of(files.text(folder + "/current_link_speed")),
          .most_speed_gts = decimal_of(files.text(folder + "/max_link_speed")),
          .width = width("/current_link_width"),
          .most_width = width("/max_link_width")};
}

std::vector<gpu> read_gpus(const machine_files& files) {
  const std::string folder = "proc/driver/nvidia/gpus";
  std::vector<gpu> gpus;
  for (const std::string& address : files.names_in(folder)) {
    const std::string text = files.text(fmt::format("{}/{}/information", folder, address));
    gpus.push_back(
        {.pci_address = address,
         .model = line_value(text, "Model:"),
         .minor = static_cast<int>(number_of(line_value(text, "Device Minor:")).value_or(-1)),
         .link = link_at(files, "sys/bus/pci/drivers/nvidia/" + address)});
  }
  return gpus;
}

std::vector<network_interface> read_interfaces(const machine_files& files) {
  std::vector<network_interface> interfaces;
  for (const std::string& name : files.names_in("sys/class/net")) {
    const std::string folder = "sys/class/net/" + name;
    const std::string state = files.text(folder + "/operstate");
    interfaces.push_back({.name = name,
                          .is_up = state == "up" || state == "unknown",  // tunnels do not say
                          .mtu = static_cast<int>(files.number(folder + "/mtu").value_or(0)),
                          .speed_mbps = static_cast<int>(
                              std::max(files.number(folder + "/speed").value_or(0), 0LL))});
  }
  return interfaces;
}

/// Lines of `ip -o address`: "2: eth0    inet 192.0.2.9/30 brd ...".
std::vector<rendezvous::network_port> read_addresses(
    const std::string& text, const std::vector<network_interface>& interfaces) {
  std::vector<rendezvous::network_port> ports;
  std::istringstream lines{text};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words{line};
    std::string number;
    std::string name;
    std::string family;
    std::string address;
    words >> number >> name >> family >> address;
    const std::size_t slash = address.find('/');
    if (!family.starts_with("inet") || slash == std::string::npos) {
      continue;
    }
    const auto known = std::ranges::find(interfaces, name, &network_interface::name);
    const bool is_known = known != interfaces.end();
    ports.push_back({.interface = name,
                     .address = address.substr(0, slash),
                     .prefix_length = std::atoi(address.c_str() + slash + 1),
                     .is_up = !is_known || known->is_up,
                     .speed_mbps = is_known ? known->speed_mbps : 0});
  }
  return ports;
}

std::vector<nccl::gid_entry> read_gids(const machine_files& files, const std::string& folder) {
  std::vector<nccl::gid_entry> gids;
  for (const std::string& index : files.names_in(folder + "/gids")) {
    const std::string type = files.text(folder + "/gid_attrs/types/" + index);
    gids.push_back({.index = std::atoi(index.c_str()),
                    .gid = files.text(folder + "/gids/" + index),
                    .type = type == "RoCE v2"           ? nccl::gid_type::roce_v2
                            : type.ends_with("RoCE v1") ? nccl::gid_type::roce_v1
                                                        : nccl::gid_type::infiniband});
  }
  std::ranges::sort(gids, {}, &nccl::gid_entry::index);
  return gids;
}

std::vector<roce_port> read_roce(const machine_files& files) {
  std::vector<roce_port> ports;
  for (const std::string& device : files.names_in("sys/class/infiniband")) {
    const std::string hardware = fmt::format("sys/class/infiniband/{}/device", device);
    const auto interfaces = files.names_in(hardware + "/net");
    for (const std::string& port :
         files.names_in(fmt::format("sys/class/infiniband/{}/ports", device))) {
      const std::string folder = fmt::format("sys/class/infiniband/{}/ports/{}", device, port);
      ports.push_back(
          {.device = device,
           .port = std::atoi(port.c_str()),
           .is_active = files.text(folder + "/state").find("ACTIVE") != std::string::npos,
           .rate_gbps = decimal_of(files.text(folder + "/rate")),
           .interface = interfaces.empty() ? "" : interfaces.front(),
           .pci_address = line_value(files.text(hardware + "/uevent"), "PCI_SLOT_NAME="),
           .link = link_at(files, hardware),
           .gids = read_gids(files, folder)});
    }
  }
  return ports;
}

std::vector<nccl_file> read_nccl(const machine_files& files, const std::string& loader_path) {
  std::vector<nccl_file> found;
  for (const std::string& path : files.paths()) {
    if (path.ends_with("/libnccl.so.2")) {
      const std::string text = files.text(path);
      found.push_back({.path = "/" + path,
                       .file = line_value(text, "file "),
                       .version = line_value(text, "version "),
                       .hash = line_value(text, "hash ")});
    }
  }
  // As the loader looks: LD_LIBRARY_PATH in its order, then the system's folders.
  const auto order = [&](const nccl_file& file) {
    const std::size_t named = loader_path.find(file.path.substr(0, file.path.rfind('/')));
    return std::tuple{named, !file.path.starts_with("/usr/lib"), file.path};
  };
  std::ranges::sort(found, {}, order);
  return found;
}

/// "tmpfs /dev/shm tmpfs rw,size=65536k 0 0".
std::optional<long long> shm_bytes_of(const std::string& mounts) {
  std::istringstream lines{mounts};
  for (std::string line; std::getline(lines, line);) {
    const std::size_t at = line.find("size=");
    if (line.find(" /dev/shm ") == std::string::npos || at == std::string::npos) {
      continue;
    }
    const auto number = number_of(line.substr(at + 5));
    const std::size_t unit = line.find_first_not_of("0123456789", at + 5);
    const char letter = unit == std::string::npos ? ' ' : line[unit];
    const int shift = letter == 'k' ? 10 : letter == 'm' ? 20 : letter == 'g' ? 30 : 0;
    return number ? std::optional{*number << shift} : std::nullopt;
  }
  return std::nullopt;
}

std::optional<long long> kilobytes(const std::string& meminfo, const std::string& key) {
  return number_of(line_value(meminfo, key));
}

std::map<std::string, std::string> read_variables(const std::string& environment) {
  std::map<std::string, std::string> variables;
  std::istringstream lines{environment};
  for (std::string line; std::getline(lines, line);) {
    if (const std::size_t equals = line.find('='); equals != std::string::npos) {
      variables[line.substr(0, equals)] = line.substr(equals + 1);
    }
  }
  return variables;
}

/// "NVRM version: NVIDIA UNIX Open Kernel Module for aarch64  580.95.05  Release Build".
std::string driver_version(const std::string& text) {
  std::istringstream words{line_value(text, "NVRM version:")};
  for (std::string word; words >> word;) {
    if (word.find_first_of("0123456789") == 0 && word.find('.') != std::string::npos) {
      return word;
    }
  }
  return {};
}

/// {"cuda": {"name": "CUDA SDK", "version": "13.0.1"}, ...
std::string cuda_version(const std::string& json) {
  const std::size_t cuda = json.find("\"cuda\"");
  const std::size_t key = json.find("\"version\"", cuda == std::string::npos ? 0 : cuda);
  const std::size_t first = json.find_first_of("0123456789", key);
  if (cuda == std::string::npos || key == std::string::npos || first == std::string::npos) {
    return {};
  }
  return json.substr(first, json.find('"', first) - first);
}

void read_paths(const machine_files& files, machine_snapshot& machine) {
  for (const std::string& path : files.paths()) {
    if (path.starts_with("dev/")) {
      machine.devices["/" + path] = files.text(path);
    }
    if (path.ends_with("nccl.conf") || "/" + path == machine.variable("NCCL_CONF_FILE")) {
      machine.config_files["/" + path] = files.text(path);
    }
    machine.has_libcuda = machine.has_libcuda || path.ends_with("/libcuda.so.1");
    machine.has_nvswitch = machine.has_nvswitch || path.starts_with("dev/nvidia-nvswitch") ||
                           path.starts_with("dev/nvidia-caps-imex-channels/");
  }
}

}  // namespace

bool machine_snapshot::is_spark() const {
  return product.find("Spark") != std::string::npos ||
         std::ranges::any_of(
             gpus, [](const gpu& each) { return each.model.find("GB10") != std::string::npos; });
}

const network_interface* machine_snapshot::interface(const std::string& name) const {
  const auto at = std::ranges::find(interfaces, name, &network_interface::name);
  return at == interfaces.end() ? nullptr : &*at;
}

std::string machine_snapshot::variable(const std::string& name) const {
  const auto at = variables.find(name);
  return at == variables.end() ? "" : at->second;
}

machine_snapshot read_snapshot(const machine_files& files) {
  machine_snapshot machine;
  machine.host = files.text("proc/sys/kernel/hostname");
  machine.kernel = files.text("proc/sys/kernel/osrelease");
  machine.product = files.text("sys/class/dmi/id/product_name");
  machine.driver = driver_version(files.text("proc/driver/nvidia/version"));
  machine.cuda = cuda_version(files.text("usr/local/cuda/version.json"));
  machine.gpus = read_gpus(files);
  machine.interfaces = read_interfaces(files);
  machine.ports = read_addresses(files.text("ip-address"), machine.interfaces);
  machine.roce = read_roce(files);
  machine.variables = read_variables(files.text("proc/self/environ"));
  machine.nccl = read_nccl(files, machine.variable("LD_LIBRARY_PATH"));
  machine.locked_bytes = number_of(line_value(files.text("proc/self/limits"), "Max locked memory"));
  machine.shm_bytes = shm_bytes_of(files.text("proc/self/mounts"));
  machine.cma_total_kb = kilobytes(files.text("proc/meminfo"), "CmaTotal:");
  machine.cma_free_kb = kilobytes(files.text("proc/meminfo"), "CmaFree:");
  read_paths(files, machine);
  return machine;
}

std::string describe(const machine_snapshot& machine) {
  const auto or_none = [](const std::string& text) { return text.empty() ? "none" : text; };
  const auto active = std::ranges::count_if(machine.roce, &roce_port::is_active);
  return fmt::format(
      "{}{}{}, Linux {}\nGPUs: {}{}, driver {}, CUDA toolkit {}\nNCCL: {}\nRoCE ports: {}, {} "
      "active\n",
      machine.host.empty() ? "this machine" : machine.host,
      machine.product.empty() ? "" : ", ",
      machine.product,
      or_none(machine.kernel),
      machine.gpus.size(),
      machine.gpus.empty() ? "" : " x " + machine.gpus.front().model,
      or_none(machine.driver),
      or_none(machine.cuda),
      machine.nccl.empty()
          ? "none"
          : fmt::format("{}, {}", machine.nccl.front().version, machine.nccl.front().path),
      machine.roce.size(),
      active);
}

int version_number(const std::string& version) {
  int major = 0;
  int minor = 0;
  int patch = 0;
  char dot = '.';
  std::istringstream text{version};
  if (!(text >> major >> dot >> minor >> dot >> patch)) {
    return 0;
  }
  return 10000 * major + 100 * minor + patch;
}

}  // namespace spark_comm::app::doctor
