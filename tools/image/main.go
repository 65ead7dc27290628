package main

import (
 _ "github.com/google/go-containerregistry/pkg/registry"
 _ "github.com/google/go-containerregistry/pkg/v1/layout"
 _ "github.com/google/go-containerregistry/pkg/v1/tarball"
 _ "github.com/google/go-containerregistry/pkg/v1/validate"
 _ "github.com/google/go-containerregistry/pkg/v1/remote"
 _ "github.com/google/go-containerregistry/pkg/v1/mutate"
)
func main(){}
