import ServiceManager
import Testing

@Suite("Notices to the service manager")
struct ServiceNoticeTests {
    @Test(
        "Each notice is the assignments that sd_notify knows",
        arguments: [
            (ServiceNotice.ready("Takes pushes"), "READY=1\nSTATUS=Takes pushes"),
            (.reloading("Reads", monotonicMicroseconds: 7), "RELOADING=1\nMONOTONIC_USEC=7\nSTATUS=Reads"),
            (.status("Waits"), "STATUS=Waits"),
            (.alive, "WATCHDOG=1"),
        ]
    )
    func texts(notice: ServiceNotice, text: String) {
        #expect(notice.text == text)
    }

    @Test("A stop that was announced may take as long as it says, and then some")
    func stopping() {
        #expect(
            ServiceNotice.stopping("Drains", milliseconds: 600_000).text
                == "STOPPING=1\nEXTEND_TIMEOUT_USEC=615000000\nSTATUS=Drains"
        )
    }

    @Test("Words with line feeds cannot make assignments of their own")
    func lineFeeds() {
        #expect(ServiceNotice.status("a\nMAINPID=1\r\nb").text == "STATUS=a MAINPID=1 b")
    }
}
