/* Prints the layout of every structure of ptxkit.h and the value of every number that a program may have compiled in.
 */
#include <ptxkit.h>
#include <stddef.h>
#include <stdio.h>

#define SIZE(type) printf("%s %zu\n", #type, sizeof(type))
#define MEMBER(type, member) printf("  %s %zu+%zu\n", #member, offsetof(type, member), sizeof(((type*)0)->member))
#define NUMBER(name) printf("%s = %d\n", #name, (int)(name))

int main(void) {
  SIZE(ptxkit_status);
  SIZE(ptxkit_codec);
  SIZE(ptxkit_framing);
  SIZE(ptxkit_codec_info);
  MEMBER(ptxkit_codec_info, struct_bytes);
  MEMBER(ptxkit_codec_info, codec);
  MEMBER(ptxkit_codec_info, name);
  MEMBER(ptxkit_codec_info, extension);
  MEMBER(ptxkit_codec_info, operations);
  MEMBER(ptxkit_codec_info, framings);
  MEMBER(ptxkit_codec_info, least_level);
  MEMBER(ptxkit_codec_info, greatest_level);
  MEMBER(ptxkit_codec_info, default_level);
  MEMBER(ptxkit_codec_info, default_block_bytes);
  MEMBER(ptxkit_codec_info, largest_host_item);
  MEMBER(ptxkit_codec_info, largest_device_item);
  MEMBER(ptxkit_codec_info, input_alignment);
  MEMBER(ptxkit_codec_info, reserved);
  SIZE(ptxkit_hooks);
  MEMBER(ptxkit_hooks, struct_bytes);
  MEMBER(ptxkit_hooks, user);
  MEMBER(ptxkit_hooks, log);
  MEMBER(ptxkit_hooks, allocate);
  MEMBER(ptxkit_hooks, release);
  MEMBER(ptxkit_hooks, progress);
  MEMBER(ptxkit_hooks, is_cancelled);
  MEMBER(ptxkit_hooks, reserved);
  SIZE(ptxkit_context_options);
  MEMBER(ptxkit_context_options, struct_bytes);
  MEMBER(ptxkit_context_options, policy);
  MEMBER(ptxkit_context_options, cpu_threads);
  MEMBER(ptxkit_context_options, device_count);
  MEMBER(ptxkit_context_options, devices);
  MEMBER(ptxkit_context_options, device_memory_bytes);
  MEMBER(ptxkit_context_options, expected_bytes);
  MEMBER(ptxkit_context_options, cuda_library);
  MEMBER(ptxkit_context_options, calibration_path);
  MEMBER(ptxkit_context_options, hooks);
  SIZE(ptxkit_batch_options);
  MEMBER(ptxkit_batch_options, struct_bytes);
  MEMBER(ptxkit_batch_options, codec);
  MEMBER(ptxkit_batch_options, framing);
  MEMBER(ptxkit_batch_options, level);
  MEMBER(ptxkit_batch_options, flags);
  MEMBER(ptxkit_batch_options, reserved);
  SIZE(ptxkit_device_requirements);
  MEMBER(ptxkit_device_requirements, struct_bytes);
  MEMBER(ptxkit_device_requirements, input_alignment);
  MEMBER(ptxkit_device_requirements, output_alignment);
  MEMBER(ptxkit_device_requirements, temp_alignment);
  MEMBER(ptxkit_device_requirements, temp_bytes);
  MEMBER(ptxkit_device_requirements, output_bytes);
  MEMBER(ptxkit_device_requirements, reserved);
  SIZE(ptxkit_stream_options);
  MEMBER(ptxkit_stream_options, struct_bytes);
  MEMBER(ptxkit_stream_options, codec);
  MEMBER(ptxkit_stream_options, level);
  MEMBER(ptxkit_stream_options, flags);
  MEMBER(ptxkit_stream_options, block_bytes);
  MEMBER(ptxkit_stream_options, content_bytes);
  MEMBER(ptxkit_stream_options, memory_bytes);
  MEMBER(ptxkit_stream_options, hooks);
  MEMBER(ptxkit_stream_options, reserved);
  SIZE(ptxkit_totals);
  MEMBER(ptxkit_totals, raw_bytes);
  MEMBER(ptxkit_totals, stored_bytes);
  MEMBER(ptxkit_totals, frame_count);
  MEMBER(ptxkit_totals, block_count);
  SIZE(ptxkit_argument);
  MEMBER(ptxkit_argument, kind);
  MEMBER(ptxkit_argument, alignment);
  MEMBER(ptxkit_argument, data);
  MEMBER(ptxkit_argument, bytes);
  MEMBER(ptxkit_argument, name);
  SIZE(ptxkit_launch_shape);
  MEMBER(ptxkit_launch_shape, grid);
  MEMBER(ptxkit_launch_shape, block);
  MEMBER(ptxkit_launch_shape, cluster);
  MEMBER(ptxkit_launch_shape, dynamic_shared_bytes);
  MEMBER(ptxkit_launch_shape, reserved);
  NUMBER(PTXKIT_OK);
  NUMBER(PTXKIT_INVALID_VALUE);
  NUMBER(PTXKIT_UNSUPPORTED);
  NUMBER(PTXKIT_CANNOT_DECOMPRESS);
  NUMBER(PTXKIT_BAD_CHECKSUM);
  NUMBER(PTXKIT_OUTPUT_TOO_SMALL);
  NUMBER(PTXKIT_MISALIGNED);
  NUMBER(PTXKIT_ITEM_TOO_LARGE);
  NUMBER(PTXKIT_NO_MEMORY);
  NUMBER(PTXKIT_IO);
  NUMBER(PTXKIT_CANCELLED);
  NUMBER(PTXKIT_NO_DEVICE);
  NUMBER(PTXKIT_DEVICE);
  NUMBER(PTXKIT_INTERNAL);
  NUMBER(PTXKIT_CODEC_LZ4);
  NUMBER(PTXKIT_FRAMING_RAW);
  NUMBER(PTXKIT_FRAMING_FRAME);
  NUMBER(PTXKIT_FRAMING_NUMCODECS);
  NUMBER(PTXKIT_FRAMING_HDF5);
  NUMBER(PTXKIT_FRAMING_STORED);
  NUMBER(PTXKIT_CAN_HOST_BATCH);
  NUMBER(PTXKIT_CAN_STREAM);
  NUMBER(PTXKIT_CAN_DEVICE_BATCH);
  NUMBER(PTXKIT_POLICY_AUTOMATIC);
  NUMBER(PTXKIT_POLICY_CPU);
  NUMBER(PTXKIT_POLICY_GPU);
  NUMBER(PTXKIT_POLICY_MIXED);
  NUMBER(PTXKIT_REPRODUCIBLE);
  NUMBER(PTXKIT_NO_CONTENT_CHECKSUM);
  NUMBER(PTXKIT_BLOCK_CHECKSUMS);
  NUMBER(PTXKIT_LINKED_BLOCKS);
  NUMBER(PTXKIT_ARGUMENT_VALUE);
  NUMBER(PTXKIT_ARGUMENT_IN);
  NUMBER(PTXKIT_ARGUMENT_OUT);
  NUMBER(PTXKIT_ARGUMENT_IN_OUT);
  return 0;
}
