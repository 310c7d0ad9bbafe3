import Glibc

/// Set before the first input.
nonisolated(unsafe) private var check: Check = { _ in }

/// Called by the main function of libFuzzer with the arguments, `NAME [OPTION…] FOLDER`, of which those after the name
/// are libFuzzer's; the seeds are put into the folder. Without a name it lists them.
@_cdecl("LLVMFuzzerInitialize")
func initialize(
  _ count: UnsafeMutablePointer<Int32>,
  _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>>
) -> Int32 {
  let given = (1..<Int(count.pointee)).compactMap { arguments.pointee[$0].map { String(cString: $0) } }
  guard let name = given.first, let found = checks.first(where: { $0.key == name })?.value else {
    print(checks.map(\.key).joined(separator: "\n"))
    exit(given.isEmpty ? 0 : 2)
  }
  check = found
  var status = stat()
  if let folder = given.last, stat(folder, &status) == 0, status.st_mode & S_IFMT == S_IFDIR {
    for (index, seed) in (try! seeds(of: name)).enumerated() {
      guard let file = fopen("\(folder)/seed-\(index + 1)", "w") else { continue }
      fwrite(seed, 1, seed.count, file)
      fclose(file)
    }
  }
  arguments.pointee[1] = arguments.pointee[0]
  arguments.pointee += 1
  count.pointee -= 1
  return 0
}

/// Called by libFuzzer with each input.
@_cdecl("LLVMFuzzerTestOneInput")
func test(_ start: UnsafePointer<UInt8>?, _ count: Int) -> Int32 {
  check(Array(UnsafeBufferPointer(start: start, count: count)))
  return 0
}
