package services

// What the tests look at from outside.
var UnionPorts = unionPorts
