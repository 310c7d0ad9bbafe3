import EventLoop
import Glibc
import TestSupport
import Testing

@Suite struct ResidentMemoryTests {
  /// Of a mapping of our own: what else the process has in RAM changes with every other test.
  @Test func trimmingLetsGoOfCodeThatDoesNotRun() throws {
    let pageSize = Int(sysconf(Int32(_SC_PAGESIZE)))
    let file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC)
    defer { close(file) }
    let size = Int(lseek(file, 0, SEEK_END)) / pageSize * pageSize
    let code = try #require(mmap(nil, size, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0))
    try #require(code != MAP_FAILED)
    defer { munmap(code, size) }
    let pages = stride(from: 0, to: size, by: pageSize)
    // As if it ran.
    #expect(pages.reduce(0) { $0 | code.load(fromByteOffset: $1, as: UInt8.self) } != 0)
    let before = try Self.pagesInRAM(of: code, size)
    #expect(before > 0)
    #expect(try #require(ResidentMemory.kibibytes) > before * pageSize / 1024)
    ResidentMemory.trim()
    #expect(try Self.pagesInRAM(of: code, size) == 0)
  }

  /// As the kernel tells of each page of the process (proc(5), pagemap).
  private static func pagesInRAM(of start: UnsafeMutableRawPointer, _ size: Int) throws -> Int {
    let pageSize = Int(sysconf(Int32(_SC_PAGESIZE)))
    let file = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC)
    defer { close(file) }
    var pages = [UInt64](repeating: 0, count: size / pageSize)
    let length = pages.count * MemoryLayout<UInt64>.size
    guard pread(file, &pages, length, Int(bitPattern: start) / pageSize * MemoryLayout<UInt64>.size) == length
    else { throw Failure("/proc/self/pagemap: errno \(errno)") }
    return pages.count { $0 >> 63 == 1 }
  }
}
