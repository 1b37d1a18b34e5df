// Package site is the model of a declared site: hosts, networks, images, nodes, roles, volumes, releases. It
// defines Orrery's terms.
//
// Package sitefile makes a Site from a site directory, and package check finds its mistakes. A Site without
// mistakes is complete: every node knows its id, its roles in order, its image and its addresses. It never
// changes afterwards. Other packages only read it: spec describes it for the code that builds it, render
// fills its templates, and twin derives another Site from it.
//
// The package does no I/O. Fields that come straight from a key of a file have tags with the key, its default
// and its unit (package strict).
//
// # Identity
//
// MAC, derived address, machine-id and the names of bridges and links are digests of names (identity.go), so
// a node that is made again is the same to its peers. Ids are numbers for life. /etc/hosts of every node is a
// link to /etc/orrery/hosts, which the host writes: when nodes come or go, all others see it, and nothing has
// to be done on them.
package site
