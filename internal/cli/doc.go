// Package cli is the command line of Orrery, with a file for each verb.
//
// Run is the whole program, from arguments to exit status. It makes a verb.Call, which has the
// session with its site, Confirmer and Watcher, and the streams. newRoot, in root.go, passes the call to
// each verb and lists the verbs in the order of orrery help.
//
// A verb is a function in a file of its name, in a package for its subject:
//
//   - siteverb: create and read a site directory
//   - lifeverb: bring nodes up and down, start, stop and move them
//   - dataverb: backups, snapshots, volumes
//   - releaseverb: releases and twins
//   - nodeverb: work with nodes
//   - hostverb: this host, the hosts of a site and their simulation, layers; and the verbs that
//     Orrery runs itself
//   - labverb: measure
//
// Subcommands of a verb are in the same file, as long as it stays short. The function takes a
// *verb.Call and returns a cobra command whose flags are its variables. If the flags need methods,
// they are the fields of a type, as for status. The command's run makes one call to package control
// or a package below it. It prints the typed result for people or, with --json, for programs, using
// reply.Answer or table.List. A function that prints takes a writer and the result, so a test needs
// no call. A verb makes no decisions about a site.
//
// What several verbs share is in package verb. Verbs take no structs of closures, and watchers have
// only the streams that they write to.
package cli
