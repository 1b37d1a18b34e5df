// Package site is the model of a declared site: its hosts, networks, nodes and roles.
// It defines Orrery's terms.
//
// Package sitefile reads a Site from a site directory, and package check reports its mistakes. A
// Site without mistakes is complete: every node has its id, its roles in order, its image and its
// addresses. It never changes afterwards. Other packages only read it. Package spec derives from it
// what the engines build, render fills its templates, and twin derives another Site from it.
//
// The package does no I/O. Fields that are read directly from a key of a file have tags with the
// key, its default and its unit (package strict).
//
// # Identity
//
// A node's MAC, derived address and machine-id, and the names of bridges and links, are digests of
// names (identity.go). A node that is recreated therefore looks the same to its peers. Ids are
// permanent numbers. On every node /etc/hosts is a link to /etc/orrery/hosts, which the host
// writes. When nodes come or go, all other nodes see the change without any work on those nodes.
package site
