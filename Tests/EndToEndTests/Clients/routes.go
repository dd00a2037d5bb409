// Asks with Go's net/http for every line of standard input; ask_httpx.py says what comes and goes (`routes`).
package main

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"
)

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	authority, err := os.ReadFile(os.Args[2])
	fail(err)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	transport := &http.Transport{
		TLSClientConfig:   &tls.Config{RootCAs: roots},
		ForceAttemptHTTP2: os.Args[1] == "2",
	}
	client := &http.Client{Transport: transport, Timeout: 20 * time.Second}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		var body io.Reader
		if words[0] == "POST" {
			body = strings.NewReader("{}")
		}
		request, err := http.NewRequest(words[0], words[1], body)
		fail(err)
		answer, err := client.Do(request)
		fail(err)
		length := "stream"
		if words[0] == "HEAD" || !strings.HasPrefix(answer.Header.Get("Content-Type"), "text/event-stream") {
			content, err := io.ReadAll(answer.Body)
			fail(err)
			length = fmt.Sprint(len(content))
		}
		answer.Body.Close()
		if fmt.Sprint(answer.ProtoMajor) != os.Args[1] {
			fail(fmt.Errorf("%s was answered with %s", words[1], answer.Proto))
		}
		fmt.Println(words[0], words[1], answer.StatusCode, length)
	}
}
