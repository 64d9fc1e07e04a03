// A client in Go for the sandbox lane, static and without the C library, and a server of HTTP/2 for it and for curl.
//
//	client get URL...               prints the protocol and body of each, or its error
//	client serve CERTIFICATE KEY    serves HTTPS with HTTP/2, and prints its port; ends with its standard input
package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"
)

func main() {
	switch {
	case len(os.Args) > 2 && os.Args[1] == "get":
		for _, url := range os.Args[2:] {
			get(url)
		}
	case len(os.Args) == 4 && os.Args[1] == "serve":
		serve(os.Args[2], os.Args[3])
	default:
		fmt.Fprintln(os.Stderr, "usage: client get URL... | client serve CERTIFICATE KEY")
		os.Exit(2)
	}
}

func get(url string) {
	client := http.Client{Timeout: 10 * time.Second}
	response, err := client.Get(url)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s %s", response.Proto, body)
}

func serve(certificate, key string) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	hello := func(response http.ResponseWriter, request *http.Request) {
		fmt.Fprintf(response, "hello %s over %s\n", request.Host, request.Proto)
	}
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	go func() {
		fmt.Fprintln(os.Stderr, http.ServeTLS(listener, http.HandlerFunc(hello), certificate, key))
		os.Exit(1)
	}()
	io.Copy(io.Discard, os.Stdin)
}
