{
  "targets": [
    {
      "target_name": "agentrewind",
      "conditions": [
        ["OS=='linux'", {
          "sources": [
            "core/beneath.cpp",
            "core/bpf-call.cpp",
            "core/bpf-effects.cpp",
            "core/bpf-library.cpp",
            "core/bpf-load.cpp",
            "core/change-log.cpp",
            "core/change-name.cpp",
            "core/change-inode.cpp",
            "core/descriptor.cpp",
            "core/entry.cpp",
            "core/faults.cpp",
            "core/listing.cpp",
            "core/database-group.cpp",
            "core/file-system.cpp",
            "core/freezer.cpp",
            "core/hole-map.cpp",
            "core/ipc-objects.cpp",
            "core/loop-device.cpp",
            "core/mappings.cpp",
            "core/mounting.cpp",
            "core/open-files.cpp",
            "core/processes.cpp",
            "core/same-content.cpp",
            "core/scan.cpp",
            "core/scan-content.cpp",
            "core/scan-links.cpp",
            "core/scan-read.cpp",
            "core/scan-walk.cpp",
            "core/scan-work.cpp",
            "core/sequence.cpp",
            "core/sink.cpp",
            "core/stamps.cpp",
            "core/statx.cpp",
            "core/subvolume.cpp",
            "core/tree.cpp",
            "core/tree-difference.cpp",
            "core/tree-image.cpp",
            "core/restore-folder.cpp",
            "core/restore-job.cpp",
            "core/restore-metadata.cpp",
            "core/restore-place.cpp",
            "core/restore-run.cpp",
            "core/restore-stage.cpp",
            "core/stored-entry.cpp",
            "core/watch.cpp",
            "core/workers.cpp",
            "core/write-faults.cpp",
            "core/writers.cpp",
            "core/xattr.cpp",
            "binding/addon.cpp",
            "binding/arguments.cpp",
            "binding/bpf.cpp",
            "binding/change.cpp",
            "binding/errors.cpp",
            "binding/layers.cpp",
            "binding/read.cpp",
            "binding/restore.cpp",
            "binding/scan-host.cpp",
            "binding/scanner.cpp",
            "binding/tree-workers.cpp",
            "binding/writers.cpp"
          ],
          "include_dirs": ["<!(node -p \"require('node-addon-api').include_dir\")"],
          "defines": [
            "_FILE_OFFSET_BITS=64",
            "_GNU_SOURCE",
            "NAPI_VERSION=9",
            "NAPI_DISABLE_CPP_EXCEPTIONS",
            "NODE_API_SWALLOW_UNTHROWABLE_EXCEPTIONS"
          ],
          "cflags": ["-fvisibility=hidden", "-Wall", "-Wextra", "-Wno-unused-parameter"],
          "cflags_cc": ["-fvisibility-inlines-hidden"]
        }, {
          "type": "none"
        }]
      ]
    }
  ]
}
