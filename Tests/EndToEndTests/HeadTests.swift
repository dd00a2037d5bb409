import Foundation
import Testing

@Suite("What HEAD is answered", .serialized, .timeLimit(.minutes(15)))
struct HeadTests {
    private static let token = String(repeating: "4ead4ead", count: 8)
    private static let topic = "com.example.head"

    /// Paths of the edge and the admin listener, and the status of HEAD there.
    private static let edge = [
        "/3/device/\(token)": 405, "/v1/topics/\(topic)/devices": 405, "/v1/devices/\(token)": 405,
        "/v1/topics/\(topic)/wakes": 405, "/none": 405, "/v1/none": 404,
    ]
    private static let admin = [
        "/": 200, "/dashboard/main.js": 200, "/healthz": 200, "/readyz": 200, "/version": 200, "/openapi.json": 200,
        "/metrics": 200, "/v1/stats": 200, "/v1/stats/topics/\(topic)": 200, "/v1/topics": 200,
        "/v1/devices/\(token)": 200, "/v1/devices/\(token)/pushes": 200, "/v1/devices/\(token)/events": 200,
        "/v1/samples?every=1": 200, "/v1/faults": 200,
        "/v1/live": 405, "/v1/events": 405, "/v1/backup": 405, "/v1/devices/\(token)/conditions": 405,
        "/v1/devices/none": 400,
        "/v1/devices/" + String(repeating: "0", count: 64): 404,
    ]

    @Test("curl -I is answered what GET would be, over HTTP/2 and HTTP/1.1, and so is nghttp")
    func curlAndNghttp() throws {
        let gateway = try RunningGateway()
        #expect(try gateway.push(Self.token, topic: Self.topic).status == 200)
        let asked =
            Self.edge.map { ("https://\(gateway.edge)\($0.key)", $0.value, ["--http2"]) }
            + Self.admin.map {
                ("http://\(gateway.admin)\($0.key)", $0.value, ["--http2-prior-knowledge", "--http1.1"])
            }
        for (url, status, versions) in asked {
            for version in versions {
                let write = ["-I", version, "--output", "/dev/null", "--write-out", "%{http_code} %{size_download}"]
                let ended = try ChildProcess.run("curl", gateway.curlOptions + write + [url])
                #expect(ended.status == 0 && ended.output == "\(status) 0", "\(url) \(version): \(ended)")
            }
        }
        let urls = ["http://\(gateway.admin)/v1/stats", "http://\(gateway.admin)/version"]
        let ended = try ChildProcess.run("nghttp", ["--verbose", "-H", ":method: HEAD"] + urls)
        #expect(ended.status == 0)
        #expect(ended.output.components(separatedBy: ":status: 200").count == 3, "\(ended.output)")
        #expect(!ended.output.contains("recv DATA frame") && !ended.output.contains("RST_STREAM"), "\(ended.output)")
    }

    @Test("Where HEAD is taken, allow says so, and on streams it is refused like any other method")
    func allow() throws {
        let gateway = try RunningGateway()
        #expect(try gateway.admin("/v1/stats", "-X", "POST").headers["allow"] == "GET, HEAD")
        #expect(try gateway.admin("/v1/devices/\(Self.token)", "-X", "POST").headers["allow"] == "GET, HEAD, DELETE")
        #expect(try gateway.admin("/v1/live", "-X", "POST").headers["allow"] == "GET")
        #expect(try gateway.admin("/v1/live", "-I").headers["allow"] == "GET")
        #expect(try gateway.edge("/v1/topics/\(Self.topic)/wakes", "-I").headers["allow"] == "GET")
    }
}
