import EventLoop
import Glibc
import TestSupport
import Testing

@Suite struct SignalTests {
  /// Only the loop's own thread blocks the signals and gets them: they are sent to it alone, so that the other
  /// threads of the test process, which do not block them, are not concerned.
  @Test func signalsAreEventsOfTheLoop() async throws {
    let received = Record<Int32>()
    await loop.perform {
      loop.signals([SIGUSR1, SIGUSR2]) { received.append($0) }
      pthread_kill(pthread_self(), SIGUSR1)
    }
    #expect(try await received.first(1) == [SIGUSR1])
    await loop.perform {
      pthread_kill(pthread_self(), SIGUSR2)
      pthread_kill(pthread_self(), SIGUSR1)
    }
    #expect(try await received.first(3).sorted() == [SIGUSR1, SIGUSR1, SIGUSR2])
  }
}
