// SPDX-License-Identifier: AGPL-3.0-only
#include "unique_ids.hpp"

#include "nccl_abi.hpp"
#include "segment.hpp"
#include "segment_layout.hpp"

#include <cstdint>
#include <cstring>
#include <deque>
#include <mutex>
#include <utility>
#include <vector>

namespace spark_comm::host::nccl {
namespace {

struct open_id {
  std::uint64_t token = 0;
  segment shared;
};

// Process state that a C interface without a library handle cannot do without. Never destroyed:
// threads may still be inside a call while the process exits.
struct open_ids {
  std::mutex mutex;
  std::deque<open_id> ids;
};

open_ids& process_ids() {
  static auto* ids = new open_ids;  // NOLINT(cppcoreguidelines-owning-memory): see above
  return *ids;
}

}  // namespace

int make_unique_id(unique_id& id) {
  open_id made;
  if (const int code = make_token(made.token); code != results::success) {
    return code;
  }
  constexpr std::size_t bytes = segment_layout::header_bytes();
  if (const int code = made.shared.create(bytes, bytes); code != results::success) {
    return code;
  }
  if (const int code = made.shared.map(bytes); code != results::success) {
    return code;
  }
  reinterpret_cast<segment_header*>(made.shared.data())->token = made.token;
  segment_address address;
  if (const int code = made.shared.describe(made.token, address); code != results::success) {
    return code;
  }
  static_assert(sizeof address <= sizeof id.internal);
  std::memset(id.internal, 0, sizeof id.internal);
  std::memcpy(id.internal, &address, sizeof address);

  open_ids& known = process_ids();
  const std::scoped_lock lock{known.mutex};
  if (known.ids.size() == most_open_ids) {
    known.ids.pop_front();
  }
  known.ids.push_back(std::move(made));
  return results::success;
}

segment_address address_of(const unique_id& id) noexcept {
  segment_address address;
  std::memcpy(&address, id.internal, sizeof address);
  return address;
}

void release_unique_id(std::uint64_t token) noexcept {
  open_ids& known = process_ids();
  const std::scoped_lock lock{known.mutex};
  std::erase_if(known.ids, [token](const open_id& each) { return each.token == token; });
}

}  // namespace spark_comm::host::nccl
