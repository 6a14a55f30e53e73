// SPDX-License-Identifier: AGPL-3.0-only
// Answers to "is it finished?". Neither is an error, and neither can be turned into one.
#pragma once

namespace spark_comm {

/// Answer of a poll.
enum class progress {
  pending,  ///< Not yet; ask again.
  done,     ///< Finished, successfully.
};

/// Answer of a bounded wait.
enum class wait_result {
  done,       ///< Finished, successfully, before the deadline.
  timed_out,  ///< The deadline passed first; the work may still finish.
};

}  // namespace spark_comm
