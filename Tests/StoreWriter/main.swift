// store-writer COMMAND PATH: a process with a store, for tests that kill it, limit its files, or fill its disk.
//
//   rounds   gives the same 20 keys a new number, again and again; says `round N` when N is on the disk
//   keep     puts 50 values of 1 KiB, prints what happens, and closes on SIGTERM
//   spool    adds 500 messages, then 1000, which are too many; on SIGTERM again
//   open     opens it, and says how many records the section `a` has, and what the trouble is
//   measure  opens and closes, and says how much memory that took, in KiB
import EventLoop
import Glibc
import Store

func report(_ text: String) {
  print(text)
  fflush(nil)
}

@LoopActor func rounds(_ path: String) async -> Never {
  var last = lastRound(path)
  while true {
    let store = StateDatabase(path: path)
    guard store.opening == .opened else { fail("\(store.opening)") }
    last += 1
    for key in 0..<20 { store.put("key \(key)", Array("\(last)".utf8)) }
    guard await store.close(within: .seconds(10)) == 0 else { fail("round \(last) is not written") }
    report("round \(last)")
  }
}

/// The highest number in the file.
func lastRound(_ path: String) -> Int {
  let records = (try? StateDatabase.records(path: path)) ?? [:]
  return records.values.compactMap { Int(String(decoding: $0, as: UTF8.self)) }.max() ?? 0
}

/// Gets a value on SIGTERM.
@LoopActor func awaitEnd() -> Waiter<Void> {
  let end = Waiter<Void>()
  loop.signals([SIGTERM]) { _ in end.resume(.success(())) }
  // A write beyond the file size limit then fails instead of killing the process.
  signal(SIGXFSZ, SIG_IGN)
  return end
}

@LoopActor func spool(_ path: String) async {
  let end = awaitEnd()
  let file = SpoolFile(path: path, maxAge: 1000, maxBytes: 1 << 30)
  func add(_ numbers: ClosedRange<Int64>) -> SpoolFile.Outcome {
    var work = SpoolFile.Work()
    work.added = numbers.map {
      SpoolFile.Entry(number: $0, time: 0, topic: [0x74], payload: [UInt8](repeating: 0x78, count: 100))
    }
    return file.perform(work)
  }
  let first = add(1...500)
  guard first.isAdded else { fail("\(first.failure ?? "not added")") }
  let full = add(501...1500)
  report("failing \(full.failure ?? "not"), \(full.content.messages) kept")
  try? await end.value()
  var work = SpoolFile.Work()
  work.readAfter = 0
  let kept = Int64(file.perform(work).read.count)
  report("\(kept) kept, then \(add(501...1500).content.messages - kept)")
}

@LoopActor func keep(_ path: String) async {
  let end = awaitEnd()
  let store = StateDatabase(path: path)
  report("\(store.records.count) records, \(store.opening)")
  for key in 0..<50 { store.put("key \(key)", [UInt8](repeating: UInt8(ascii: "x"), count: 1024)) }
  report("put")
  try? await end.value()
  report("\(await store.close(within: .seconds(10))) not written")
}

@LoopActor func open(_ path: String) async {
  let database = StateDatabase(path: path)
  report("\(database.section("a").takeRecords().count) records, trouble: \(database.trouble ?? "none")")
  await database.close(within: .seconds(10))
}

@LoopActor func measure(_ path: String) async {
  let before = residentMemory()
  let store = StateDatabase(path: path)
  let open = residentMemory() - before
  store.put("key", Array("value".utf8))
  await store.close(within: .seconds(10))
  let written = residentMemory() - before
  report("\(store.records.count) records, \(store.opening): open \(open), written \(written)")
}

/// In KiB, including the pages of libraries.
func residentMemory() -> Int { ResidentMemory.kibibytes ?? 0 }

func fail(_ reason: String) -> Never {
  report(reason)
  exit(1)
}

guard CommandLine.arguments.count == 3 else { fail("store-writer rounds|keep|spool|open|measure PATH") }
let (command, path) = (CommandLine.arguments[1], CommandLine.arguments[2])
loop.run {
  switch command {
  case "rounds": await rounds(path)
  case "keep": await keep(path)
  case "spool": await spool(path)
  case "open": await open(path)
  case "measure": await measure(path)
  case let other: fail("\(other)?")
  }
  exit(0)
}
