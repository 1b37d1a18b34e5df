// Package examples has the examples, from which `orrery init --example` writes a site directory.
package examples

import "embed"

// Files has the files of all examples.
//
//go:embed */*
var Files embed.FS
