// Trace: the kernel under construction. The typed headers (value.hpp, pointer.hpp, kernel.hpp) decide what is allowed
// and call this class, which builds LLVM IR. No header of the DSL includes LLVM.
//
// A Value is an opaque handle. The typed layer knows its type and passes it along as a Scalar.
#pragma once

#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "builder/intrinsic.hpp"
#include "builder/types.hpp"

namespace ptxkit::dsl {

struct Value {
  void* node = nullptr;
  u32 region = 0;  // the branch or loop that made it; 0 is the kernel's body
};

// An address and, in checked builds, the object that no access through it may leave. Arrays, spans and the result of
// Ptr::within have an object; a bare pointer parameter has none.
struct Place {
  Value address;
  Value offset{};  // u64: bytes from the object's start to the address; no node: no object is known
  Value bytes{};   // u64: the object's size
};

class Trace;

// One operand of an operator: a traced value, or a literal given by its bits (trace == nullptr).
struct Operand {
  Trace* trace = nullptr;
  Value value;
  u64 bits = 0;
  Where where;
};

enum class Binary : u8 { add, sub, mul, div, rem, and_, or_, xor_, shl, shr, min, max };
enum class Compare : u8 { eq, ne, lt, le, gt, ge };

// A variable: its alloca, the depth of regions at its declaration, and the line of the declaration.
struct Slot {
  void* node = nullptr;
  size_t depth = 0;
  Where declared;
};

enum class ParameterKind : u8 { pointer, scalar };

// One PTX parameter. A Span makes two: the pointer, and its length in elements, named <name>_size.
struct Parameter {
  std::string name;
  ParameterKind kind = ParameterKind::scalar;
  Scalar scalar = Scalar::uint32;  // the type of a scalar, or of a pointer's element
  Space space = Space::global;     // of a pointer
  size_t align = 1;                // of a pointer, in bytes; the launch guarantees it
  bool writable = false;           // of a pointer
  std::string size_parameter;      // of a span's pointer: the parameter with its element count
};

enum class Variant : u8 { release, checked, debug };  // debug is checked plus markers
const char* name_of(Variant variant);

enum class Order : u8 { relaxed, acquire, release, acq_rel };
enum class Scope : u8 { cta, gpu, sys };
enum class AtomicOp : u8 { add, min, max, exch, and_, or_, xor_ };

// An alignment, of an address or of an offset, that the author declared without proof, with the reason.
struct Assumption {
  size_t align;
  std::string why;
  Where where;
};

class Trace {
 public:
  struct State;  // holds the LLVM objects

  explicit Trace(std::unique_ptr<State> state);
  ~Trace();
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  State& state() { return *state_; }
  bool is_checked() const;  // emit bounds checks and traps
  bool is_debug() const;    // emit markers
  unsigned sm() const;      // 75, 80, 90

  // Values. Shifts and divisions follow the scalar's sign. A shift by the width or more and a division by zero trap in
  // checked builds and are undefined otherwise. Integer arithmetic wraps.
  Value constant(Scalar scalar, u64 bits);
  Value binary(Binary op, Scalar scalar, Value a, Value b, Where where);
  Value compare(Compare op, Scalar scalar, Value a, Value b, Where where);
  Value negate(Scalar scalar, Value a, Where where);
  Value convert(Scalar from, Scalar to, Value a,
                Where where);  // widening follows the sign of `from`, narrowing truncates
  Value bitcast(Scalar from, Scalar to, Value a, Where where);
  Value select(Value condition, Value a, Value b, Where where);
  Value intrinsic(Intrinsic id, Scalar scalar, std::initializer_list<Value> arguments, Where where);

  // Shuffles 8- to 64-bit values with the 32-bit intrinsic `id`, in groups of `width` lanes. `rate` is the result's.
  Value shuffle(Intrinsic id, Scalar scalar, Rate rate, Value value, Value lane, u32 width, Where where);
  Value inclusive_sum(Value value, Where where);

  // Variables and arrays. `align` is in bytes and always explicit.
  Slot declare(Scalar scalar, Value initial, Where where);
  Value read(Scalar scalar, const Slot& slot, Where where);
  void assign(const Slot& slot, Rate rate, Value value, Where where);
  Place array(Space space, const char* name, Scalar element, u64 count, size_t align, Where where);

  Value parameter(size_t index);  // the pointer or scalar with that index

  // Places. An index is extended to the width of the space's addresses by its sign, then multiplied by `scale` bytes.
  // The place with a u64 address, rounded down to `align`, of no known object.
  Place place_at(Space space, Value address, size_t align, Where where);
  Place offset(Space space, const Place& place, Scalar index_type, u64 scale, Value index, Where where);
  Place offset(Space space, const Place& place, i64 byte_offset, Where where);
  Place align_down(Space space, const Place& place, size_t align, Where where);
  Value address(Space space, const Place& place, Where where);  // as u64 or u32
  // The place with an object of `count` elements, its size rounded up to a multiple of `granule_bytes`. For checked
  // builds only. Traps where the new object leaves the place's previous one.
  Place within(const Place& place, Scalar count_type, Value count, u64 element_bytes, u64 granule_bytes, Where where);
  void assume_aligned(Space space, const Place& place, size_t align, const char* why, Where where);
  void assume_multiple(Scalar scalar, Value value, size_t of, const char* why, Where where);

  // Accesses. In checked builds an access that leaves the place's object traps. For byte-wise and unaligned reads the
  // check covers the bytes of the value only.
  Value load(Space space, Scalar scalar, size_t align, const Place& place, Where where);
  void store(Scalar scalar, size_t align, const Place& place, Value value, Where where);
  void load_vector(Space space, Scalar scalar, size_t align, const Place& place, std::span<Value> lanes, Where where);
  void store_vector(Scalar scalar, size_t align, const Place& place, std::span<const Value> lanes, Where where);
  Value load_bytewise(Space space, Scalar scalar, const Place& place, Where where);
  Value load_unaligned_u32(Space space, const Place& place, Where where);
  Value load_ordered(Space space, Scalar scalar, const Place& place, Order order, Scope scope, Where where);
  void store_ordered(Space space, Scalar scalar, const Place& place, Value value, Order order, Scope scope,
                     Where where);
  Value atomic(AtomicOp op, Space space, Scalar scalar, const Place& place, Value value, Order order, Scope scope,
               Where where);
  void atomic_if(Value condition, AtomicOp op, Space space, Scalar scalar, const Place& place, Value value, Order order,
                 Scope scope, Where where);
  Value compare_exchange(Space space, Scalar scalar, const Place& place, Value expected, Value desired, Order order,
                         Scope scope, Where where);
  void fence(Order order, Scope scope, Where where);
  void prefetch_l2(const Place& place, Where where);  // of global memory

  // Control flow. Regions nest strictly.
  struct If;
  struct Loop;
  If* open_if(Value condition, Rate rate, Where where);
  void close_if(If* branch);
  void open_else(If* branch, Where where);
  void close_else(If* branch);
  Loop* open_loop(Rate rate, Where where);
  void open_latch(Loop* loop);  // code after it also runs before the next iteration, on `continue` too
  void close_loop(Loop* loop);
  void jump_if(Loop* loop, bool leave, Value condition, Rate rate, Where where);
  void return_if(Value condition, Rate rate, Where where);
  void trap_if(Value condition, Where where);  // in every variant
  void require_together(Rate together, const char* what, Where where);

  // Markers, in debug builds only. `value` is a u64.
  void mark(u32 id, Value value, Where where);

 private:
  std::unique_ptr<State> state_;
};

// The result of an operator in the typed layer. `apply` finds the trace of its operands, turns literals into constants
// and emits the operation.
struct Traced {
  Trace* trace;
  Value value;
};
Traced apply(Binary op, Scalar scalar, const Operand& a, const Operand& b);
Traced apply(Compare op, Scalar scalar, const Operand& a, const Operand& b);
Value materialise(Trace& trace, Scalar scalar, const Operand& operand);

}  // namespace ptxkit::dsl
