// SPDX-License-Identifier: AGPL-3.0-only
// A machine as the checks see it: what its files say, read into values. Nothing is judged here.
#pragma once

#include "doctor/machine_files.hpp"

#include <spark_comm/nccl/gid.hpp>
#include <spark_comm/rendezvous/network_port.hpp>

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace spark_comm::app::doctor {

/// A lane count or speed of a PCIe device: what it has, and what it could have.
struct pcie_link {
  double speed_gts = 0;  ///< 0: not known.
  double most_speed_gts = 0;
  int width = 0;  ///< 0: not known.
  int most_width = 0;
};

struct gpu {
  std::string pci_address;  ///< "0000:01:00.0"
  std::string model;        ///< "NVIDIA GB10"
  int minor = -1;           ///< Of its device file.
  pcie_link link;
};

struct network_interface {
  std::string name;
  bool is_up = false;
  int mtu = 0;
  int speed_mbps = 0;  ///< 0: not known.
};

/// One port of an RDMA device.
struct roce_port {
  std::string device;  ///< "rocep1s0f0"
  int port = 1;
  bool is_active = false;
  double rate_gbps = 0;
  std::string interface;  ///< Its Ethernet interface; empty for InfiniBand.
  std::string pci_address;
  pcie_link link;
  std::vector<nccl::gid_entry> gids;  ///< Those that are filled in.
};

struct nccl_file {
  std::string path;     ///< Where it was found.
  std::string file;     ///< Where that leads.
  std::string version;  ///< "2.28.9+cuda13.0"
  std::string hash;
};

struct machine_snapshot {
  std::string host;
  std::string kernel;
  std::string product;
  std::string driver;  ///< Version of NVIDIA's kernel driver; empty: not loaded.
  std::string cuda;    ///< Version of the toolkit; empty: none.
  bool has_libcuda = false;
  bool has_nvswitch = false;  ///< Or a domain of NVLink over several machines.
  std::vector<gpu> gpus;
  std::vector<network_interface> interfaces;
  std::vector<rendezvous::network_port> ports;  ///< Their addresses.
  std::vector<roce_port> roce;
  std::vector<nccl_file> nccl;                 ///< In the order in which the loader would look.
  std::map<std::string, std::string> devices;  ///< Access by path: "/dev/nvidiactl" -> "rw".
  std::map<std::string, std::string> variables;
  std::map<std::string, std::string> config_files;  ///< NCCL's: path -> text.
  std::optional<long long> locked_bytes;            ///< Limit; none: unlimited or not known.
  std::optional<long long> shm_bytes;               ///< Size of /dev/shm, where it is stated.
  std::optional<long long> cma_total_kb;
  std::optional<long long> cma_free_kb;

  /// A DGX Spark or a machine of its kind: one GB10, ports in two halves.
  [[nodiscard]] bool is_spark() const;
  [[nodiscard]] const network_interface* interface(const std::string& name) const;
  [[nodiscard]] std::string variable(const std::string& name) const;
};

[[nodiscard]] machine_snapshot read_snapshot(const machine_files& files);

/// What the heading of the output says: host, product, driver, NCCL, ports.
[[nodiscard]] std::string describe(const machine_snapshot& machine);

/// "2.28.9+cuda13.0" as 22809; 0 for what is no version.
[[nodiscard]] int version_number(const std::string& version);

}  // namespace spark_comm::app::doctor
