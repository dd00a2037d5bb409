import Foundation
import Testing

@Suite("Background tasks over HTTP", .serialized, .timeLimit(.minutes(15)))
struct TaskRouteTests {
    private let topic = "com.example.tasks"
    private let token = String(repeating: "7a", count: 32)

    private func gateway(_ arguments: String...) throws -> RunningGateway {
        let gateway = try RunningGateway(arguments)
        let registered = try gateway.edge("/v1/topics/\(self.topic)/devices", "-d", #"{"token":"\#(self.token)"}"#)
        #expect(registered.status == 201)
        return gateway
    }

    private func submit(_ gateway: RunningGateway, _ body: String) throws -> Answer {
        try gateway.edge("/v1/devices/\(self.token)/tasks", "-d", body)
    }

    private func report(_ gateway: RunningGateway, _ conditions: String) throws -> Answer {
        try gateway.edge("/v1/devices/\(self.token)/conditions", "-X", "PATCH", "-d", conditions)
    }

    @Test("A refresh waits for a stream that handles it, launches, and is answered with success")
    func refresh() throws {
        let gateway = try self.gateway()
        let submitted = try self.submit(gateway, #"{"identifier":"com.example.refresh","kind":"appRefresh"}"#)
        #expect(submitted.status == 201 && submitted.value("disposition") as? String == "scheduled")
        #expect(submitted.value("held") as? String == "worker" && submitted.value("kind") as? String == "appRefresh")
        let list = try gateway.edge("/v1/devices/\(self.token)/tasks")
        let waiting = try #require((list.value("waiting") as? [[String: Any]])?.first)
        #expect(waiting["identifier"] as? String == "com.example.refresh" && waiting["attempts"] as? Int == 0)
        #expect((waiting["why"] as? String)?.contains("task=com.example.refresh") == true)

        let worker = try gateway.curlWorker(topic: self.topic, query: "&task=com.example.*")
        let wake = try #require(try worker.next())
        #expect(wake.name == "wake" && wake.data["kind"] as? String == "appRefresh")
        #expect(wake.data["task"] as? String == "com.example.refresh" && wake.data["attempt"] as? Int == 1)
        #expect(wake.data["submittedAt"] as? Int == waiting["submittedAt"] as? Int)
        #expect(wake.data["timeLeft"] as? Int != nil && wake.data["apnsID"] == nil)
        let id = try #require(wake.id)
        let running = try gateway.edge("/v1/devices/\(self.token)/tasks").value("running") as? [[String: Any]]
        #expect(running?.first?["wake"] as? String == id)
        let wrong = try gateway.edge("/v1/wakes/\(id)", "-d", #"{"result":"newData"}"#)
        #expect(wrong.status == 400 && wrong.reason == "BadResult")
        #expect(try gateway.edge("/v1/wakes/\(id)", "-d", #"{"success":true}"#).status == 204)
        let stats = try gateway.stats()
        #expect(stats.integer("tasks", "submitted") == 1 && stats.integer("tasks", "results", "success") == 1)
        #expect(stats.integer("tasks", "waiting") == 0 && stats.integer("wakes", "launched") == 0)
    }

    @Test("Every reason and outcome of tasks and sessions is counted from the beginning")
    func books() throws {
        let gateway = try self.gateway()
        let stats = try gateway.stats()
        func names(_ path: String...) -> Set<String> {
            var value: Any? = try? JSONSerialization.jsonObject(with: Data(stats.body.utf8))
            for name in path { value = (value as? [String: Any])?[name] }
            return Set((value as? [String: Any])?.keys.map { $0 } ?? [])
        }
        let reasons: Set = ["exhausted", "forceQuit", "cancelled", "unregistered"]
        let outcomes: Set = ["success", "failure", "expired", "interrupted", "cancelled", "lost"]
        #expect(
            names("tasks") == [
                "submitted", "refused", "replaced", "cancelled", "discarded", "results", "waiting", "inFlight",
            ]
        )
        #expect(
            names("tasks", "refused") == [
                "NotPermitted", "Unavailable", "NotForeground", "TooManyPendingTaskRequests", "ImmediateRunIneligible",
            ]
        )
        #expect(names("tasks", "discarded") == reasons && names("tasks", "results") == outcomes)
        #expect(
            names("sessions") == ["finished", "refused", "completed", "discarded", "results", "waiting", "inFlight"]
        )
        #expect(names("sessions", "discarded") == reasons && names("sessions", "results") == outcomes)
    }

    @Test("A continued task is for a person who waits: it tells its progress, and a cancellation ends it")
    func continued() throws {
        let gateway = try self.gateway()
        let body = #"{"identifier":"export","kind":"continued","title":"Export","resources":["gpu"]}"#
        let early = try self.submit(gateway, body)
        #expect(early.status == 409 && early.reason == "NotForeground")
        #expect(try self.report(gateway, #"{"appState":"active"}"#).status == 200)
        let query = "&task=export&resource=gpu&push=0&conditions=1"
        let worker = try gateway.curlWorker(topic: self.topic, query: query)
        #expect(try gateway.edge("/v1/topics/\(self.topic)/resources").body == #"{"resources":["gpu"]}"#)
        let submitted = try self.submit(gateway, body)
        #expect(submitted.value("disposition") as? String == "launched" && submitted.value("held") is NSNull)
        let wake = try #require(try worker.next())
        #expect(wake.data["title"] as? String == "Export")
        let id = try #require(wake.id)
        let told = try gateway.edge("/v1/wakes/\(id)/progress", "-d", #"{"completed":1,"total":4,"subtitle":"one"}"#)
        #expect(try #require(told.integer("deadline")) >= #require(wake.data["deadline"] as? Int))
        let list = try gateway.edge("/v1/devices/\(self.token)/tasks").value("running") as? [[String: Any]]
        let progress = try #require(list?.first?["progress"] as? [String: Any])
        #expect(progress["completed"] as? Int == 1 && progress["subtitle"] as? String == "one")
        #expect(try self.report(gateway, #"{"batteryLevel":0.5}"#).status == 200)
        let changed = try #require(try worker.next())
        #expect(changed.name == "conditions" && changed.data["device"] as? String == self.token)
        #expect(changed.data["batteryLevel"] as? Double == 0.5 && changed.data["appState"] as? String == "active")
        #expect(try gateway.edge("/v1/devices/\(self.token)/tasks/export", "-X", "DELETE").status == 204)
        let expired = try #require(try worker.next())
        #expect(expired.name == "expired" && expired.data["reason"] as? String == "cancelled")
        let late = try gateway.edge("/v1/wakes/\(id)/progress", "-d", #"{"completed":2,"total":4}"#)
        #expect(late.status == 409 && late.value("outcome") as? String == "cancelled")
    }

    @Test("Finished transfers of a session wake its stream with their count")
    func session() throws {
        let gateway = try self.gateway()
        let path = "/v1/devices/\(self.token)/sessions/uploads"
        #expect(try gateway.edge(path, "-d", #"{"finished":2,"id":"a"}"#).status == 202)
        #expect(try gateway.edge(path, "-d", #"{"finished":2,"id":"a"}"#).status == 202)
        #expect(try gateway.edge(path, "-d", #"{"finished":3}"#).status == 202)
        let worker = try gateway.curlWorker(topic: self.topic, query: "&session=uploads")
        let wake = try #require(try worker.next())
        #expect(wake.data["kind"] as? String == "urlSession" && wake.data["session"] as? String == "uploads")
        #expect(wake.data["count"] as? Int == 5)
        let id = try #require(wake.id)
        let progress = try gateway.edge("/v1/wakes/\(id)/progress", "-d", #"{"completed":1,"total":2}"#)
        #expect(progress.status == 409 && progress.reason == "NotContinued")
        #expect(try gateway.edge("/v1/wakes/\(id)", "-d", #"{"success":true}"#).status == 204)
        #expect(try gateway.stats().integer("sessions", "completed") == 5)
    }

    @Test("Operators see what waits and runs on all devices, launch it and end it")
    func operators() throws {
        let gateway = try self.gateway()
        let body = #"{"identifier":"clean","kind":"processing","requiresExternalPower":true}"#
        #expect(try self.submit(gateway, body).value("held") as? String == "power")
        let worker = try gateway.curlWorker(topic: self.topic, query: "&task=clean")
        let path = "/v1/devices/\(self.token)/tasks/clean"
        #expect(try gateway.admin("\(path)/simulate-expiration", "-X", "POST").reason == "NoWakeInFlight")
        #expect(try gateway.admin("\(path)/simulate-launch", "-X", "POST").status == 202)
        #expect(try worker.next()?.data["kind"] as? String == "processing")
        func tasks(_ query: String) throws -> [[String: Any]] {
            try gateway.admin("/v1/tasks\(query)").value("tasks") as? [[String: Any]] ?? []
        }
        let running = try #require(try tasks("?state=running&kind=processing&topic=\(self.topic)").first)
        #expect(running["device"] as? String == self.token && running["topic"] as? String == self.topic)
        #expect(running["state"] as? String == "running" && running["identifier"] as? String == "clean")
        #expect(try tasks("?state=waiting").isEmpty && tasks("?kind=continued").isEmpty)
        #expect(try tasks("?topic=com.example.none").isEmpty)
        #expect(try gateway.admin("/v1/tasks?state=lost").status == 400)
        #expect(try gateway.admin("\(path)/simulate-expiration", "-X", "POST").status == 202)
        #expect(try worker.next()?.data["reason"] as? String == "operator")

        #expect(try self.report(gateway, #"{"appState":"active"}"#).status == 200)
        let explained = try gateway.admin("/v1/devices/\(self.token)")
        #expect(explained.value("tasks", "running") as? [String] == [])
        #expect(explained.integer("usage", "lastUse") != nil)
        #expect(explained.value("usage", "habitualHours") as? [Int] == [])
    }

    @Test("What is not permitted, twice handled, or too much is refused by name")
    func refused() throws {
        let gateway = try self.gateway(
            "--set",
            "topics.\(self.topic).tasks=['com.example.*']",
            "--set",
            "limits.submissionsPerCredentialMax=3",
            "--set",
            "limits.taskRequestsMax=1"
        )
        let foreign = try self.submit(gateway, #"{"identifier":"other","kind":"appRefresh"}"#)
        #expect(foreign.status == 403 && foreign.reason == "NotPermitted")
        #expect(try self.submit(gateway, #"{"identifier":"com.example.a","kind":"processing"}"#).status == 201)
        let full = try self.submit(gateway, #"{"identifier":"com.example.b","kind":"processing"}"#)
        #expect(full.status == 429 && (full.value("message") as? String)?.contains("limits.taskRequestsMax") == true)
        let often = try gateway.edge("/v1/devices/\(self.token)/sessions/s", "-d", #"{"finished":1}"#)
        let message = often.value("message") as? String ?? ""
        // The minute may have ended in between.
        if often.status == 429, message.contains("PerCredential") {
            #expect(message.contains("limits.submissionsPerCredentialMax") && often.headers["retry-after"] == "60")
        }
        let duplicate = try gateway.edge("/v1/topics/\(self.topic)/wakes?task=a&task=a")
        #expect(duplicate.status == 400 && duplicate.reason == "DuplicateTask")
        #expect(try gateway.stats().integer("limits", "taskRequestsMax") ?? 0 >= 1)
    }
}
