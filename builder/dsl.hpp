// Includes the whole DSL. Kernels need no other header of builder/.
#pragma once

#include "builder/atomic.hpp"
#include "builder/define.hpp"
#include "builder/emit.hpp"
#include "builder/error.hpp"
#include "builder/kernel.hpp"
#include "builder/pointer.hpp"
#include "builder/registry.hpp"
#include "builder/value.hpp"
#include "builder/warp.hpp"
