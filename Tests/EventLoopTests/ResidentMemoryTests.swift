import EventLoop
import Glibc
import Testing

@Suite struct ResidentMemoryTests {
  @Test func countsPagesThatAreTouched() throws {
    let size = 64 << 20
    let before = try #require(ResidentMemory.kibibytes)
    let block = try #require(mmap(nil, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))
    try #require(block != MAP_FAILED)
    defer { munmap(block, size) }
    memset(block, 1, size)
    // Other tests allocate and free meanwhile, but less than half of it.
    #expect(try #require(ResidentMemory.kibibytes) > before + size / 1024 / 2)
  }
}
