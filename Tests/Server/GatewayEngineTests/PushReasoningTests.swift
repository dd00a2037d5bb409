import Engine
import Gateway
import Policy
import Testing
import WakeGateTestKit
import Wire

@Suite("Why a push waits, or would wait", .timeLimit(.minutes(15)))
struct PushReasoningTests {
    private static let topic = EngineRig.topicName(0)
    private static let start = "start one (wakegate worker --topic \(topic) -- COMMAND)"
    private static let would = "Nothing is pending, and a push of priority 5 that comes now would"

    /// Returns a rig with a registered device, and a worker if requested.
    private func rig(_ parameters: [(PolicyParameter, Double)] = [], hasWorker: Bool = true) -> DispatchRig {
        let rig = DispatchRig(EngineRig.open([(.launchInterval, 60), (.executionWindow, 20)] + parameters))
        rig.rig.register(1)
        if hasWorker { rig.subscribe(1, slots: 4) }
        return rig
    }

    /// Returns the explanation about a device.
    private func why(_ rig: DispatchRig, _ webhook: WebhookStatus? = nil) -> String {
        let device = rig.rig.index(1)
        let workers = rig.dispatcher.workerCounts(rig.engine.topic(of: device))
        return Reasoning(device: rig.dispatcher.snapshot(device), offset: .ahead)
            .push(webhook, workers, at: rig.engine.now)
    }

    /// A condition that holds pushes, and its explanation.
    struct Condition: Sendable {
        let what: String
        let end: String
        let change: @Sendable (inout ConditionsReport) -> Void

        init(_ what: String, until end: String, _ change: @escaping @Sendable (inout ConditionsReport) -> Void) {
            (self.what, self.end, self.change) = (what, end, change)
        }

        static let all = [
            Condition("the app was force-quit", until: "appState is reported as background or active") {
                $0.appState = .forceQuit
            },
            Condition("background refresh is denied", until: "it is reported as available") {
                $0.backgroundRefresh = .denied
            },
            Condition(
                "background refresh is restricted, which the user of the device cannot change",
                until: "the restriction (parental controls, or a profile of an administrator) is lifted and it is "
                    + "reported as available"
            ) { $0.backgroundRefresh = .restricted },
            Condition("the device has no network", until: "it reports one") { $0.network = false },
            Condition(
                "the thermal state is serious",
                until: "the device reports that it is cooler, or with a push of priority 10"
            ) { $0.thermalState = .serious },
            Condition("the thermal state is critical", until: "the device reports that it is cooler") {
                $0.thermalState = .critical
            },
            Condition(
                "the battery is at 1 %, below the critical 5 %, and not charging",
                until: "the device reports more charge or a charger, or with a push of priority 10"
            ) { $0.batteryLevel = 0.01 },
        ]
    }

    @Test("Each hold is named with its end, for a pending push and for a future one", arguments: Condition.all)
    func holds(condition: Condition) {
        let rig = self.rig([(.criticalBattery, 0.05)])
        rig.conditions(1, condition.change)
        #expect(self.why(rig) == "\(Self.would) be held because \(condition.what), until \(condition.end).")
        rig.push(1)
        #expect(self.why(rig) == "The push is held because \(condition.what), and launches once \(condition.end).")
    }

    @Test("All holds are named, followed by the missing time and worker")
    func several() {
        let rig = self.rig()
        rig.push(1)
        let wakes = rig.takeDeliveries().map(\.wake)
        for wake in wakes { rig.report(FetchResult.newData, wake) }
        rig.endStream(1)
        rig.conditions(1) { report in
            report.network = false
            report.thermalState = .serious
        }
        let reasons =
            "the device has no network, until it reports one; the thermal state is serious, until the device reports "
            + "that it is cooler, or with a push of priority 10. Besides, it"
        let noWorker = " s apart. Besides, no worker is subscribed to \(Self.topic): \(Self.start)."
        var why = self.why(rig)
        let held = "\(Self.would) be held for 2 reasons, until all of them have ended"
        #expect(why.hasPrefix("\(held): \(reasons) would wait until "), "\(why)")
        #expect(why.hasSuffix("are 60\(noWorker)"), "\(why)")
        rig.push(1)
        why = self.why(rig)
        #expect(
            why.hasPrefix(
                "The push is held for 2 reasons, and launches once all of them have ended: \(reasons) waits until "
            ),
            "\(why)"
        )
        #expect(why.hasSuffix("are 60\(noWorker)"), "\(why)")
    }

    @Test("A push of priority 10 that waits for the allowance is not explained with the interval, which ends later")
    func allowance() {
        let rig = self.rig([(.launchInterval, 900)])
        for _ in 0..<4 {
            rig.push(1, .immediate)
            for wake in rig.takeDeliveries().map(\.wake) { rig.report(FetchResult.newData, wake) }
            rig.advance(by: 100_000)
        }
        rig.push(1, .immediate)
        let why = self.why(rig)
        #expect(
            why.hasPrefix("The push waits until ")
                && why.hasSuffix(", when the allowance of priority 10 has one more launch (every 900 s)."),
            "\(why)"
        )
    }

    @Test("A push of priority 1 is explained as never waking a device, with its holds")
    func passive() {
        let rig = self.rig()
        rig.push(1, .passive)
        #expect(self.why(rig).hasPrefix("The push has priority 1, which never wakes a device: "))
        rig.conditions(1) { $0.network = false }
        #expect(
            self.why(rig) == "The push is held for 2 reasons, and launches once all of them have ended: the device has "
                + "no network, until it reports one; it has priority 1, which never wakes a device, until the device "
                + "is active, or a more urgent push comes."
        )
    }

    @Test("A missing worker is distinguished from one that accepts no pushes, and from one without a free slot")
    func workers() {
        let rig = self.rig(hasWorker: false)
        #expect(self.why(rig) == "\(Self.would) wait: no worker is subscribed to \(Self.topic): \(Self.start).")
        rig.subscribe(1, kinds: [], tasks: ["a"])
        let other = "start a worker that does (wakegate worker --topic \(Self.topic) -- COMMAND)"
        let one = "the one stream of \(Self.topic) takes no pushes of this device: \(other)"
        #expect(self.why(rig) == "\(Self.would) wait: \(one).")
        rig.subscribe(2, devices: [2])
        #expect(self.why(rig).contains("wait: none of the 2 streams of \(Self.topic) takes pushes of this device: "))
        rig.push(1)
        #expect(self.why(rig).hasPrefix("The push is due, but none of the 2 streams of "))
        rig.push(2)
        rig.subscribe(3, devices: [1, 2])
        #expect(self.why(rig).hasPrefix("A wake has been in flight since "))
        rig.endStream(3)
        rig.endStream(2)
        #expect(self.why(rig) == "The push is due, but \(one).")
    }

    @Test(
        "Workers without free slots are distinguished from no workers, and a webhook without a free slot is named",
        arguments: [false, true]
    )
    func slots(isWebhook: Bool) {
        let rig = self.rig(hasWorker: false)
        rig.subscribe(1)
        rig.push(2)
        let more = "start another (wakegate worker --topic \(Self.topic) -- COMMAND), or give one more slots"
        let reason =
            isWebhook
            ? "the one slot of the webhook of \(Self.topic) (https://localhost/wakes) is taken: give it more slots, or "
                + "answer sooner."
            : "no worker subscribed to \(Self.topic) has a free slot for this device: \(more)."
        let webhook = isWebhook ? WebhookStatus(url: "https://localhost/wakes", slots: 1) : nil
        #expect(self.why(rig, webhook) == "\(Self.would) wait: \(reason)")
        rig.push(1)
        #expect(self.why(rig, webhook) == "The push is due, but \(reason)")
    }

    @Test("A future push waits for the wake that runs in its lane")
    func lane() throws {
        var configuration = EngineRig.open([(.launchInterval, 60), (.executionWindow, 20)])
        configuration.permittedTasks = .all
        let rig = DispatchRig(configuration)
        rig.rig.register(1)
        rig.subscribe(1, slots: 4, tasks: ["refresh"])
        rig.submit(1, "refresh")
        #expect(self.why(rig).hasPrefix("\(Self.would) wait for refresh to end, which runs in the same lane and has "))
        rig.push(1)
        #expect(self.why(rig).hasPrefix("The push waits until "), "the refresh counts as a launch")
    }
}
