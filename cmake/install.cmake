# SPDX-License-Identifier: AGPL-3.0-only
# What an installation holds: library, headers, host runtime and tool; CMake package and pkg-config file.
