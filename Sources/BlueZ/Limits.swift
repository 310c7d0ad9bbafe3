import EventLoop

/// The central's time limits. bluetoothd leaves some calls unanswered, so every wait is bounded.
package struct Limits: Sendable {
  /// The limits of a gateway.
  package init() {}

  /// The limit of a Connect; then the attempt is cancelled, as others wait. (bluetoothd itself cancels it after 40 s.)
  var connect = Duration.seconds(20)
  /// A Connect that fails sooner, without a link, was refused by the controller, which else tries for as long as it may.
  var refusal = Duration.seconds(1)
  /// How long others wait for an attempt whose link is up. Most peripherals have resolved their services by then.
  var turn = Duration.seconds(3)
  /// The limit of pairing on a link. bluetoothd waits for a passkey for 60 s; the kernel ends the link if the
  /// peripheral does not respond for 30 s.
  var pair = Duration.seconds(70)
  /// A link to a paired peripheral that ends sooner was refused encryption. A link whose peripheral has gone ends after
  /// its supervision time-out (the kernel's: 420 ms).
  var shortLink = Duration.milliseconds(400)
  /// A link to a paired peripheral that bluetoothd ends by itself sooner was not encrypted. It does so 2 to 3 s after the
  /// pairing has failed, and 30 s after a request that is not answered.
  var unencryptedLink = Duration.seconds(10)
  /// The limit for resolving the services of a new link, with which others do not wait. bluetoothd itself drops a peripheral
  /// that leaves one request unanswered for 30 s; one that answers slowly must not be taken for one without a key.
  var resolve = Duration.seconds(60)
  /// The limit for the objects of resolved services to be exported.
  var export = Duration.seconds(5)
  /// The limit from the first to the last object of the services, if they are exported late.
  var exportRest = Duration.milliseconds(500)
  /// How long services that change on a link must stay the same to count as complete: bluetoothd reports neither the
  /// beginning nor the end (recorded: 0.5 s between removals and additions, at 50 ms for each response of the
  /// peripheral). Nothing may be subscribed to before: bluetoothd crashes when it removes a characteristic while it
  /// subscribes to it.
  var servicesChange = Duration.seconds(1)
  /// The limit of a read or a write, and again of a read-back; then the outcome is unknown. (bluetoothd itself ends
  /// them after 30 s.)
  var operation = Duration.seconds(10)
  /// How often a call that bluetoothd answers with `InProgress` is retried.
  var busyRetries = 5
  /// The delays between these retries: another operation on the characteristic takes a connection interval or two.
  var busyBackOff = BackOff(first: .milliseconds(50), longest: .milliseconds(800), spread: 0)
  /// The limit from the failure of operations in flight with ATT error 0x0e to the signal that the link has ended: 2 s.
  var linkLoss = Duration.milliseconds(2500)
  /// The delay between attempts to subscribe while another program has acquired the notifications.
  var notifyRetry = Duration.seconds(60)
  /// The limit of a Disconnect, which takes bluetoothd 2 to 3 s.
  var disconnect = Duration.seconds(6)
  /// The limit for signals to show the effect of a call that was answered.
  var treeUpdate = Duration.seconds(2)
  /// The limit for a peripheral that was removed from bluetoothd to be found again.
  var rediscovery = Duration.seconds(30)
  /// The limit of calls that involve no peripheral.
  var local = Duration.seconds(10)
  /// The limit for bluetoothd to list its objects, of which there may be thousands.
  var objectList = Duration.seconds(30)
  /// The delay before GetManagedObjects or StartDiscovery is retried.
  var retry = Duration.seconds(5)
  /// How long consecutive connects may pause scanning before it is resumed briefly.
  var scanPause = Duration.seconds(15)
  /// How long scanning is then resumed: several advertising intervals.
  var briefScan = Duration.seconds(3)
  /// The limit for discovery to stop before a connect, which then begins in any case.
  var scanStop = Duration.seconds(12)
  /// How often to check that bluetoothd still scans: several of the kernel's scans (10 s each); less often where nothing
  /// advertises.
  var scanCheck = BackOff(first: .seconds(30), longest: .seconds(300), spread: 0)
  /// The time from the first failure to scan until the adapter is reset, and between two resets.
  var scanReset = BackOff(first: .seconds(60), longest: .seconds(3600))
  /// The delays between attempts to power on an adapter that a reset has left off.
  var powerBackOff = BackOff(first: .seconds(5), longest: .seconds(300))
  /// The limit for a change of the power that was not answered to take effect.
  var lateChange = Duration.seconds(60)
  /// The time that a bluetoothd that has just started gets to bring up its adapters, before they are reported as absent
  /// or off.
  var startup = Duration.seconds(2)
  /// The delay between two attempts to lock an adapter that another gateway uses.
  var lockRetry = Duration.seconds(1)
  /// The delays between attempts to connect to the bus.
  var busBackOff = BackOff(first: .milliseconds(500), longest: .seconds(10))

  /// How long a connect takes at most that has its turn at once, with the end of a link before it and of its own.
  package var longestConnect: Duration {
    [disconnect, briefScan, scanStop, connect, treeUpdate, local, resolve, local, disconnect, treeUpdate]
      .reduce(.zero, +)
  }
}
