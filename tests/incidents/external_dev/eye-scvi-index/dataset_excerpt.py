    def collate_fn(self, batch):
        indexes = np.array(batch)
        X = torch.FloatTensor(self.X[indexes].toarray()) if self.dense is False else torch.FloatTensor(self.X[indexes])   # line 55
        return X, torch.FloatTensor(self.local_means[indexes]), ...
