with tf.GradientTape() as tape:
    with tf.control_dependencies([e0]):           # keep forward order: e0 -> e1 -> e2
        e1 = emb1(keys1, training=True)
    with tf.control_dependencies([e1]):
        e2 = emb2(keys2, training=True)
    logit = dnn(tf.concat([e0, e1, e2], axis=-1))
    loss = replica_loss(labels, logit)
grads = tape.gradient(loss, emb_vars + dnn.trainable_variables)
