package main

import (
	"fmt"
	"strings"
)

// Size of the sites: nodesPerHost is the number of nodes on each host, hostsPerRack the number of
// hosts that a network connects.
const (
	nodesPerHost = 20
	hostsPerRack = 10
)

// shapes are functions that return a site of a given number of hosts, by the name of the site's
// shape.
var shapes = map[string]func(hosts int) string{
	"racks": func(hosts int) string { return fixed(hosts, hostsPerRack) },
	"flat":  func(hosts int) string { return fixed(hosts, hosts) },
	"free":  free,
}

func begin(hosts int) *strings.Builder {
	b := &strings.Builder{}
	fmt.Fprintf(b, "site.name = \"scale\"\nimage.debian.suite = \"bookworm\"\n")
	for i := range hosts {
		fmt.Fprintf(b, "[host.h%d]\naddress = \"%s\"\n", i, address(i))
	}
	return b
}

func address(i int) string { return fmt.Sprintf("10.200.%d.%d", i/250, 1+i%250) }

// fixed returns a site that names the host of each node. Each network connects the given number of
// hosts.
func fixed(hosts, joined int) string {
	b := begin(hosts)
	for i := 0; i < hosts; i += joined {
		fmt.Fprintf(b, "[network.net%d]\nsubnet = \"10.%d.0.0/16\"\ngateway = \"10.%d.255.254\"\n", i/joined, i/joined,
			i/joined)
	}
	for i := range hosts {
		fmt.Fprintf(b, "[node.\"h%dn{00..%d}\"]\nid = %d\nhost = \"h%d\"\ncpus = 1\nmemory = \"512MiB\"\nroles = [\"web\"]\nnet.net%d = \"auto\"\n",
			i, nodesPerHost-1, 1+i*nodesPerHost, i, i/joined)
	}
	return b.String()
}

// free returns a site that leaves the choice of hosts to Orrery.
func free(hosts int) string {
	b := begin(hosts)
	for i := range hosts {
		fmt.Fprintf(b, "[node.\"h%dn{00..%d}\"]\nid = %d\ncpus = 1\nmemory = \"512MiB\"\nroles = [\"web\"]\n", i,
			nodesPerHost-1, 1+i*nodesPerHost)
	}
	return b.String()
}

const role = "[[health]]\ncommand = [\"true\"]\n[[file]]\npath = \"/etc/web\"\ncontent = \"it is a node\"\n"
