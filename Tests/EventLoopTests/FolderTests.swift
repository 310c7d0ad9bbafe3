import Glibc
import Testing

@testable import EventLoop

@Suite struct FolderTests {
  /// As a file system over a network may report it.
  @Test(arguments: [(4096, 1024, 4 << 20), (1 << 60, 4096, .max), (1 << 63, 1, .max)])
  func freeSpaceBeyondAnIntegerIsBounded(blocks: UInt, size: UInt, free: Int) {
    var disk = statvfs()
    disk.f_bavail = blocks
    disk.f_frsize = size
    #expect(Folder.free(on: disk) == free)
  }
}
