// SPDX-License-Identifier: AGPL-3.0-only
// How one generation of a communicator makes room for the next.
#include <spark_comm/comm/detail/communicator_core.hpp>
#include <spark_comm/core/error.hpp>
#include <spark_comm/rendezvous/session.hpp>
#include <spark_comm/supervise/communicator_state.hpp>

#include <memory>
#include <utility>

namespace spark_comm::detail {

void communicator_core::retire() noexcept {
  if (status_.state() == communicator_state::ready) {
    // Somebody else's loss, of which this rank and perhaps others have not heard.
    fail_and_announce(error{errc::aborted, "this rank reconnects", context()});
  }
  gate_.close();
  paths_->abort();
  abort_native(options_.abort_deadline);
  release_paths();
  end_supervision(flight_end::broken);
}

void communicator_core::leave_for_good() noexcept {
  before_.port.reset();
  if (session_ != nullptr) {
    static_cast<void>(session_->take_port());
  }
}

lineage communicator_core::bequeath(rendezvous::membership who) {
  before_.place = place_;
  if (session_ != nullptr) {
    before_.place = session_->place();
    before_.generation = session_->generation();
    if (auto port = session_->take_port()) {
      before_.listeners = session_->listener_addresses();
      before_.port = std::move(port);
    }
  } else if (is_alone()) {
    before_.generation = generation();
  }
  lineage next = before_;
  next.who = who;
  return next;
}

}  // namespace spark_comm::detail
