import Log
import Testing

@testable import Web

/// The one-time code, and which submission wins; random numbers are the test's.
@Suite final class SetupSessionTests {
  private struct Numbers: RandomNumberGenerator {
    var state: UInt64 = 1
    mutating func next() -> UInt64 {
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return state ^ state >> 29
    }
  }

  private var session = SetupSession()
  private var random = Numbers()
  private let code: String

  init() {
    var (session, random) = (SetupSession(), Numbers())
    code = session.open(using: &random)
    (self.session, self.random) = (session, random)
  }

  private func check(_ code: String) -> SetupSession.Answer { session.check(code, using: &random) }

  private func submit(_ code: String) -> SetupSession.Answer {
    session.check(code, submits: true, using: &random)
  }

  @Test func aCodeHasFortyBits() {
    let digits = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
    #expect(code.count == 8 && code.allSatisfy { digits.contains($0) })
    var (codes, random): (Set<String>, Numbers) = ([], Numbers())
    for _ in 0..<1000 {
      var other = SetupSession()
      codes.insert(other.open(using: &random))
    }
    #expect(codes.count == 1000)
    for place in 0..<8 { #expect(Set(codes.map { Array($0)[place] }).count == 32) }
  }

  @Test func itIsTypedAsPeopleDo() {
    let shown = SetupSession.shown(code)
    #expect(shown.count == 9 && shown.dropFirst(4).first == "-")
    #expect(check(shown) == .right && check(" \(shown.lowercased()) ") == .right)
    var other = SetupSession()
    while !(other.code ?? "").contains(where: "01".contains) {
      other = SetupSession()
      _ = other.open(using: &random)
    }
    let mistaken = String((other.code ?? "").map { $0 == "0" ? "O" : $0 == "1" ? "l" : $0 })
    #expect(other.check(mistaken, using: &random) == .right)
  }

  @Test func afterFiveWrongCodesThereIsAnother() {
    for _ in 0..<4 { #expect(check("wrong") == .wrong) }
    #expect(check(code) == .right)
    #expect(check("") == .renewed)
    #expect(session.code != code && check(code) == .wrong)
    let new = session.code ?? ""
    #expect(check(new) == .right)
  }

  @Test func theCodeIsToldAgainUntilItEnds() {
    #expect(session.open(using: &random) == code && submit(code) == .right)
    session.end()
    #expect(check(code) == .wrong)
    let new = session.open(using: &random)
    #expect(new != code && check(code) == .wrong && check(new) == .right)
    // The answers that came with the last code are still being tried.
    #expect(submit(new) == .busy)
  }

  @Test func oneSubmissionWins() {
    #expect(submit("wrong") == .wrong)
    #expect(submit(code) == .right && submit(code) == .busy)
    session.endSubmission(doneAt: nil)
    #expect(submit(code) == .right)
    let time = Timestamp(milliseconds: 1)
    session.endSubmission(doneAt: time)
    // Only who knows the code learns it.
    #expect(submit(code) == .done(time) && check(code) == .done(time) && submit("wrong") == .wrong)
  }

  @Test func nothingIsGuessedInTenThousandTries() {
    var tries = Numbers(state: 99)
    for _ in 0..<10_000 {
      var other = SetupSession()
      let guess = other.open(using: &tries)
      let answer = submit(guess)
      #expect(answer == .wrong || answer == .renewed)
    }
  }

  @Test func thereIsNoCodeBeforeItIsOpened() {
    var other = SetupSession()
    for guess in ["", "00000000", "1", "2", "3", "4", "5"] {
      #expect(other.check(guess, using: &random) == .wrong)
    }
    #expect(other.code == nil)
  }
}
