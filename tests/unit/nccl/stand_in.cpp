// SPDX-License-Identifier: AGPL-3.0-only
// A library that exports NCCL's symbols and only tells its version. Built several times with
// different versions, so that the loader meets old, new and incomplete files.
// STAND_IN_VERSION: what it says. STAND_IN_COMPLETE: exports the required calls.
// STAND_IN_NEWEST: exports the optional ones too.

extern "C" {

#define STAND_IN_EXPORT __attribute__((visibility("default")))
#define STAND_IN_CALL(name)    \
  STAND_IN_EXPORT int name() { \
    return 0;                  \
  }

STAND_IN_EXPORT int ncclGetVersion(int* version) {
  *version = STAND_IN_VERSION;
  return 0;
}

#ifdef STAND_IN_COMPLETE
STAND_IN_EXPORT const char* ncclGetErrorString(int /*code*/) {
  return "stand-in text";
}

STAND_IN_EXPORT const char* ncclGetLastError(void* /*comm*/) {
  return "";
}

STAND_IN_CALL(ncclGetUniqueId)
STAND_IN_CALL(ncclCommInitRank)
STAND_IN_CALL(ncclCommInitRankConfig)
STAND_IN_CALL(ncclCommSplit)
STAND_IN_CALL(ncclCommFinalize)
STAND_IN_CALL(ncclCommDestroy)
STAND_IN_CALL(ncclCommAbort)
STAND_IN_CALL(ncclCommGetAsyncError)
STAND_IN_CALL(ncclCommCount)
STAND_IN_CALL(ncclCommCuDevice)
STAND_IN_CALL(ncclCommUserRank)
STAND_IN_CALL(ncclCommRegister)
STAND_IN_CALL(ncclCommDeregister)
STAND_IN_CALL(ncclMemAlloc)
STAND_IN_CALL(ncclMemFree)
STAND_IN_CALL(ncclAllReduce)
STAND_IN_CALL(ncclReduce)
STAND_IN_CALL(ncclBroadcast)
STAND_IN_CALL(ncclAllGather)
STAND_IN_CALL(ncclReduceScatter)
STAND_IN_CALL(ncclSend)
STAND_IN_CALL(ncclRecv)
STAND_IN_CALL(ncclGroupStart)
STAND_IN_CALL(ncclGroupEnd)
#endif

#ifdef STAND_IN_NEWEST
STAND_IN_CALL(ncclCommWindowRegister)
STAND_IN_CALL(ncclCommWindowDeregister)
STAND_IN_CALL(ncclAlltoAll)
STAND_IN_CALL(ncclCommRevoke)
#endif

}  // extern "C"
