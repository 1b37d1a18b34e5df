// Package cli is the command line: a file for each verb.
//
// Run is the whole program, from arguments to exit status. It makes a verb.Call: the session with
// its site, asker and watcher, and the streams. newRoot, in root.go, hands it to each verb and
// lists them as orrery help does.
//
// A verb is a function in a file of its name, in a package for its subject:
//
//   - siteverb: make and read a site directory
//   - lifeverb: bring nodes up and down, start, stop and move them
//   - dataverb: backups, snapshots, volumes
//   - releaseverb: releases and twins
//   - nodeverb: work with nodes
//   - hostverb: this host, the hosts of a site, layers; and the verbs that Orrery starts itself
//   - labverb: measure
//   - rehearse: play all hosts of a site
//
// What is below a verb is in its file, as far as that stays short. The function takes a *verb.Call
// and returns a cobra command whose flags are its variables. If the flags have work of their own,
// they are the fields of a type, as those of status. The command's run makes one call to package
// control or a package below it, and prints the typed result for people or, with --json, for
// programs: reply.Answer, or table.List. A function that prints takes a writer and the result, so a
// test needs no call. A verb decides nothing about a site.
//
// What several verbs share is in package verb. No verb has a struct of closures handed to it, and
// no watcher more than the streams that it writes to.
package cli
