import EventLoop
import Glibc
import TestSupport
import Testing

@Suite struct WatchTests {
  /// Two connected sockets. Left open: a number that is closed twice may be another test's by then.
  private final class Pair: Sendable {
    let here: Int32
    let there: Int32

    init() {
      var ends: [Int32] = [0, 0]
      let type = Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
      precondition(socketpair(AF_UNIX, type, 0, &ends) == 0)
      here = ends[0]
      there = ends[1]
    }

    func send(_ count: Int = 1) { write(there, [UInt8](repeating: 7, count: count), count) }
    func take() {
      var byte: UInt8 = 0
      _ = read(here, &byte, 1)
    }
  }

  /// Keeps what must be reached from its own handler.
  @LoopActor private final class Box {
    var watches: [Watch] = []
  }

  /// epoll watches no regular file.
  @Test func whatCannotBeWatchedIsReportedAsClosed() async throws {
    let file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC)
    let reported = Waiter<Readiness>()
    let watch = await loop.perform {
      loop.watch(file, for: .readable) { reported.resume(.success($0)) }
    }
    #expect(try await reported.value() == .closed)
    await watch.cancel()
    close(file)
  }

  @Test func handlerIsCalledAgainForUnreadBytes() async throws {
    let pair = Pair()
    let calls = Record<Readiness>()
    let watch = await loop.perform {
      loop.watch(pair.here, for: .readable) { readiness in
        pair.take()
        calls.append(readiness)
      }
    }
    pair.send(3)
    #expect(try await calls.first(3) == [.readable, .readable, .readable])
    await loop.perform { watch.cancel() }
    #expect(calls.elements.count == 3)
  }

  @Test func aChangeOfInterestTakesEffectAtOnce() async throws {
    let pair = Pair()
    let calls = Record<Readiness>()
    let box = Box()
    await loop.perform {
      box.watches = [
        loop.watch(pair.here, for: .writable) { readiness in
          calls.append(readiness)
          // No longer: otherwise it would be called for ever.
          box.watches[0].interest = .readable
          if readiness.contains(.readable) { pair.take() }
        }
      ]
    }
    #expect(try await calls.first(1) == [.writable])
    pair.send()
    #expect(try await calls.first(2) == [.writable, .readable])
    await loop.perform { box.watches[0].interest = [] }
    pair.send()
    await loop.perform {}
    await loop.perform {}
    #expect(calls.elements.count == 2)
    await loop.perform { box.watches[0].interest = .readable }
    #expect(try await calls.first(3).last == .readable)
    await loop.perform { box.watches[0].cancel() }
  }

  @Test func theOtherEndsHangUpIsReportedEvenUnasked() async throws {
    let pair = Pair()
    let calls = Record<Readiness>()
    let box = Box()
    await loop.perform {
      box.watches = [
        loop.watch(pair.here, for: []) { readiness in
          calls.append(readiness)
          box.watches[0].cancel()
        }
      ]
    }
    close(pair.there)
    let readiness = try await calls.first(1)[0]
    #expect(!readiness.isDisjoint(with: .closed))
  }

  @Test func aHandlerMayCancelItsOwnWatch() async throws {
    let pair = Pair()
    let calls = Record<Void>()
    let box = Box()
    await loop.perform {
      box.watches = [
        loop.watch(pair.here, for: .readable) { _ in
          calls.append(())
          box.watches[0].cancel()
          box.watches[0].cancel()
        }
      ]
    }
    pair.send(5)
    _ = try await calls.first(1)
    for _ in 0..<3 { await loop.perform {} }
    #expect(calls.elements.count == 1)
  }

  @Test func aHandlerMayCancelAWatchThatIsReadyInTheSameIteration() async throws {
    let pairs = [Pair(), Pair()]
    let calls = Record<Int>()
    let box = Box()
    await loop.perform {
      for pair in pairs { pair.send() }
      box.watches = pairs.enumerated().map { index, pair in
        loop.watch(pair.here, for: .readable) { _ in
          calls.append(index)
          for watch in box.watches { watch.cancel() }
        }
      }
    }
    _ = try await calls.first(1)
    for _ in 0..<3 { await loop.perform {} }
    #expect(calls.elements.count == 1)
  }

  @Test func eventOfAClosedDescriptorIsNotItsSuccessors() async throws {
    let pairs = [Pair(), Pair()]
    let quiet = Pair()
    let first = Record<Int>()
    let successor = Record<Readiness>()
    let box = Box()
    await loop.perform {
      for pair in pairs { pair.send() }
      box.watches = pairs.enumerated().map { index, pair in
        loop.watch(pair.here, for: .readable) { _ in
          first.append(index)
          for watch in box.watches { watch.cancel() }
          // The other, whose event has been fetched already, gives its number to a silent socket.
          let number = pairs[1 - index].here
          dup2(quiet.here, number)
          box.watches = [loop.watch(number, for: .readable) { successor.append($0) }]
        }
      }
    }
    _ = try await first.first(1)
    for _ in 0..<3 { await loop.perform {} }
    #expect(successor.elements.isEmpty)
    quiet.send()
    #expect(try await successor.first(1)[0] == .readable)
    await loop.perform { box.watches[0].cancel() }
  }

  @Test func aDescriptorThatALibraryHasClosedDoesNoHarm() async throws {
    let old = Pair()
    let new = Pair()
    let calls = Record<String>()
    let box = Box()
    await loop.perform {
      box.watches = [loop.watch(old.here, for: .readable) { _ in calls.append("old") }]
      // The same number is watched again before the old watch is cancelled; dup2 prevents its use by others in between.
      dup2(new.here, old.here)
      box.watches.append(
        loop.watch(old.here, for: .readable) { _ in
          calls.append("new")
          box.watches[1].cancel()
        })
      box.watches[0].cancel()
    }
    new.send()
    #expect(try await calls.first(1) == ["new"])
  }
}
